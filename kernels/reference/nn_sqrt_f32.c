/* SQRT of float32. */
#include "nn_float.h"

static inline float rooted(const void *constants, float x) {
    (void)constants;
    return nn_float_root(x);
}

void nn_sqrt_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(rooted, NULL, in, out, window);
}
