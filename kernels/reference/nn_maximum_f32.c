/* MAXIMUM of float32, with broadcasting. */
#include "nn_float.h"

static inline float larger(const void *constants, float a, float b) {
    (void)constants;
    return a > b ? a : b;
}

void nn_maximum_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window) {
    nn_for_float_pairs(larger, NULL, in1, in2, out, window);
}
