/* RSQRT of float32. */
#include "nn_float.h"

static inline float inverse_root(const void *constants, float x) {
    (void)constants;
    return 1.0F / nn_float_root(x);
}

void nn_rsqrt_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(inverse_root, NULL, in, out, window);
}
