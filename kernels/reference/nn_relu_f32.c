/* RELU of float32. */
#include "nn_float.h"

static inline float rectified(const void *constants, float x) {
    (void)constants;
    return x < 0.0F ? 0.0F : x;
}

void nn_relu_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(rectified, NULL, in, out, window);
}
