/* LOG of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float logarithm(const void *constants, float x) {
    (void)constants;
    return nn_real_log(x);
}

void nn_log_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(logarithm, NULL, in, out, window);
}
