/* POW of float32, with broadcasting. */
#include "nn_float.h"
#include "nn_real.h"

static inline float power(const void *constants, float a, float b) {
    (void)constants;
    return nn_real_pow(a, b);
}

void nn_pow_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    nn_for_float_pairs(power, NULL, in1, in2, out, window);
}
