/* RELU_0_TO_1 of float32. */
#include "nn_float.h"

static inline float up_to_1(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, 0.0F, 1.0F);
}

void nn_relu_0_to_1_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(up_to_1, NULL, in, out, window);
}
