/* RELU_N1_TO_1 of float32. */
#include "nn_float.h"

static inline float around_0(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, -1.0F, 1.0F);
}

void nn_relu_n1_to_1_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(around_0, NULL, in, out, window);
}
