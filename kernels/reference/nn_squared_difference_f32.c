/* SQUARED_DIFFERENCE of float32, with broadcasting. */
#include "nn_float.h"

static inline float squared_difference(const void *constants, float a, float b) {
    const float apart = a - b;
    (void)constants;
    return apart * apart;
}

void nn_squared_difference_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                               const nn_window *window) {
    nn_for_float_pairs(squared_difference, NULL, in1, in2, out, window);
}
