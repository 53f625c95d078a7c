/* NEG of float32. */
#include "nn_float.h"

static inline float negated(const void *constants, float x) {
    (void)constants;
    return nn_float_of(nn_float_bits(x) ^ 0x80000000U);
}

void nn_neg_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(negated, NULL, in, out, window);
}
