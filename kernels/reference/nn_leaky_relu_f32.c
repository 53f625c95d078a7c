/* LEAKY_RELU of float32. */
#include "nn_float.h"

static inline float leaky(const void *constants, float x) {
    return x > 0.0F ? x : x * ((const nn_float_factor *)constants)->factor;
}

void nn_leaky_relu_f32(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    nn_for_floats(leaky, constants, in, out, window);
}
