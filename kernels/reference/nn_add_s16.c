/* ADD and SUB on int16, with broadcasting. */
#include "nn_wide.h"

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
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    /* What is negated is the rounded operand: a multiplier below zero would round halves down. */
    const int32_t sign = c.input2_multiplier < 0 ? -1 : 1;
    c.input2_multiplier *= sign;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *a = nn_wide_in(in1, y, x), *b = nn_wide_in(in2, y, x);
            int16_t *result = nn_wide_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++, a += step1, b += step2) {
                result[i] = add(&c, *a, *b, sign);
            }
        }
    }
}
