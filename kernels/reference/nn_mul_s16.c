/* MUL on int16, with broadcasting. */
#include "nn_elements.h"

static inline int16_t multiply(const nn_mul_constants *c, int32_t a, int32_t b) {
    const int32_t scaled = nn_requantise(a * b, c->output_multiplier, c->output_shift);
    return (int16_t)nn_clamp(scaled, c->clamp_min, c->clamp_max);
}

void nn_mul_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    const nn_mul_constants c = *(const nn_mul_constants *)constants;
    NN_PAIRS(int16_t, int16_t, int16_t, multiply(&c, a, b))
}
