/* The error function of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float error(const void *constants, float x) {
    (void)constants;
    return nn_real_erf(x);
}

void nn_erf_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(error, NULL, in, out, window);
}
