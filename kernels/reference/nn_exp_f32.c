/* EXP of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float exponential(const void *constants, float x) {
    (void)constants;
    return nn_real_exp(x);
}

void nn_exp_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(exponential, NULL, in, out, window);
}
