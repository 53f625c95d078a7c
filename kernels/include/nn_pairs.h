/* The arithmetic of operators of two operands, which is the same for elements of 8 and 16 bits. */
#ifndef NN_PAIRS_H
#define NN_PAIRS_H

#include "nn_elements.h"
#include "nn_fixed.h"

/* EQUAL, LESS and their like: 0 or 1. */
static inline int32_t nn_compared(const nn_compare_constants *c, int32_t a, int32_t b) {
    const int32_t first = nn_requantise((a - c->input1_zero_point) * (1 << c->left_shift),
                                        c->input1_multiplier, c->input1_shift);
    const int32_t second = nn_requantise((b - c->input2_zero_point) * (1 << c->left_shift),
                                         c->input2_multiplier, c->input2_shift);
    return c->truth >> ((first >= second) + (first > second)) & 1;
}

static inline int32_t nn_difference_squared(const nn_squared_difference_constants *c, int32_t a,
                                            int32_t b) {
    const int32_t first = nn_requantise((a - c->input1_zero_point) * (1 << c->left_shift),
                                        c->input1_multiplier, c->input1_shift);
    const int32_t second = nn_requantise((b - c->input2_zero_point) * (1 << c->left_shift),
                                         c->input2_multiplier, c->input2_shift);
    const int32_t difference = first - second;
    const int32_t scaled =
        nn_requantise(difference * difference, c->output_multiplier, c->output_shift);
    return nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min, c->clamp_max);
}

/* round(value / 2^distance), halves away from zero. From 32 on it is 0, or, with `wraps`, what the
 * reference kernel gets where the distance is taken modulo 32, with the remainder as a whole. */
static inline int32_t nn_shift_far(int32_t value, int32_t distance, int32_t wraps) {
    if (distance < 32) {
        return nn_rounding_shift(value, distance);
    }
    return wraps ? (value >> (distance & 31)) + (value >= 0) : 0;
}

/* DIV: a product with the divisor's reciprocal. A divisor of 0 gives the end of the range that the
 * dividend's sign says. */
static inline int32_t nn_quotient(const nn_div_constants *c, int32_t a, int32_t b) {
    int32_t dividend = a - c->input1_zero_point, divisor = b - c->input2_zero_point;
    int32_t zeros, room, quotient;
    if (divisor == 0) {
        return nn_clamp(dividend * 65536 + c->output_zero_point, c->clamp_min, c->clamp_max);
    }
    if (divisor < 0) {
        dividend = -dividend;
        divisor = -divisor;
    }
    zeros = nn_leading_zeros((uint32_t)divisor);
    room = nn_leading_zeros((uint32_t)(dividend < 0 ? ~dividend : dividend)) - 1;
    quotient = nn_high_multiply(
        (int32_t)((uint32_t)dividend << room),
        nn_one_over_one_plus((int32_t)(((uint32_t)divisor << zeros) ^ 0x80000000U)));
    quotient = nn_shift_far(nn_high_multiply(quotient, c->output_multiplier),
                            31 - zeros + room - c->output_shift, c->wraps);
    return nn_clamp(nn_wrapping_add(quotient, c->output_zero_point), c->clamp_min, c->clamp_max);
}

/* PRELU, before the clamp: elements below the zero point are multiplied by alpha. */
static inline int32_t nn_prelu(const nn_prelu_constants *c, int32_t element, int32_t alpha) {
    const int32_t value = element - c->input_zero_point;
    const int32_t scaled = value >= 0
                               ? nn_requantise(value, c->positive_multiplier, c->positive_shift)
                               : nn_requantise(value * (alpha - c->alpha_zero_point),
                                               c->negative_multiplier, c->negative_shift);
    return nn_wrapping_add(scaled, c->output_zero_point);
}

#endif
