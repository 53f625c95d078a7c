/* RELU6 of float32. */
#include "nn_float.h"

static inline float up_to_6(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, 0.0F, 6.0F);
}

void nn_relu6_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(up_to_6, NULL, in, out, window);
}
