/* ADD and SUB on int16, with broadcasting. */
#include "nn_elements.h"

/* a + sign * b, both on the common scale */
static inline int16_t add(const nn_add_constants *c, int32_t a, int32_t b, int32_t sign) {
    const int32_t left = 1 << c->left_shift;
    const int32_t first = nn_requantise(a * left, c->input1_multiplier, c->input1_shift);
    const int32_t second = nn_requantise(b * left, c->input2_multiplier, c->input2_shift);
    const int32_t scaled =
        nn_requantise(first + sign * second, c->output_multiplier, c->output_shift);
    return (int16_t)nn_clamp(scaled, c->clamp_min, c->clamp_max);
}

void nn_add_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    nn_add_constants c = *(const nn_add_constants *)constants;
    /* What is negated is the rounded operand: a multiplier below zero would round halves down. */
    const int32_t sign = c.input2_multiplier < 0 ? -1 : 1;
    c.input2_multiplier *= sign;
    NN_PAIRS(int16_t, int16_t, int16_t, add(&c, a, b, sign))
}
