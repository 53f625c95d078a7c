/* PRELU of float32, with broadcasting. */
#include "nn_float.h"

static inline float leaky(const void *constants, float x, float alpha) {
    (void)constants;
    return x >= 0.0F ? x : x * alpha;
}

void nn_prelu_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window) {
    nn_for_float_pairs(leaky, NULL, in1, in2, out, window);
}
