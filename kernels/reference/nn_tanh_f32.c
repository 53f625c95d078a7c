/* TANH of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float tangent(const void *constants, float x) {
    (void)constants;
    return nn_real_tanh(x);
}

void nn_tanh_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(tangent, NULL, in, out, window);
}
