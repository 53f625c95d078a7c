/* DIV of float32, with broadcasting. */
#include "nn_float.h"

static inline float quotient(const void *constants, float a, float b) {
    return nn_float_limit(constants, a / b);
}

void nn_div_f32(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    const nn_float_limits limits = *(const nn_float_limits *)constants;
    nn_for_float_pairs(quotient, &limits, in1, in2, out, window);
}
