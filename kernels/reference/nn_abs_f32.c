/* ABS of float32. */
#include "nn_float.h"

static inline float absolute(const void *constants, float x) {
    (void)constants;
    return nn_float_abs(x);
}

void nn_abs_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(absolute, NULL, in, out, window);
}
