/* HARD_SWISH of float32. */
#include "nn_float.h"

static inline float hard_swish(const void *constants, float x) {
    (void)constants;
    return x * nn_float_clamp(x + 3.0F, 0.0F, 6.0F) / 6.0F;
}

void nn_hard_swish_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(hard_swish, NULL, in, out, window);
}
