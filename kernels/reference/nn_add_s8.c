/* ADD and SUB, with broadcasting. */
#include "nn_arith.h"

/* An operand on the common scale. */
static inline int32_t rescale(int32_t value, int32_t zero_point, int32_t left_shift,
                              int32_t multiplier, int32_t shift) {
    return nn_requantise((value - zero_point) * (1 << left_shift), multiplier, shift);
}

/* a + sign * b */
static inline int8_t add(const nn_add_constants *c, int32_t a, int32_t b, int32_t sign) {
    const int32_t first =
        rescale(a, c->input1_zero_point, c->left_shift, c->input1_multiplier, c->input1_shift);
    const int32_t second =
        rescale(b, c->input2_zero_point, c->left_shift, c->input2_multiplier, c->input2_shift);
    const int32_t scaled =
        nn_requantise(first + sign * second, c->output_multiplier, c->output_shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min,
                            c->clamp_max);
}

void nn_add_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window) {
    nn_add_constants c = *(const nn_add_constants *)constants;
    /* What is negated is the rounded operand: a multiplier below zero would round halves down. */
    const int32_t sign = c.input2_multiplier < 0 ? -1 : 1;
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    c.input2_multiplier *= sign;
    const int32_t channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < channels; i++, a += step1, b += step2) {
                result[i] = add(&c, *a, *b, sign);
            }
        }
    }
}
