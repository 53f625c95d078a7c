/* Reciprocals and roots in fixed point: Qm.n is a signed number with m integer and n fractional
 * bits. They give what the reference kernels' arithmetic gives, to the bit. */
#ifndef NN_FIXED_H
#define NN_FIXED_H

#include "nn_arith.h"

/* Zeros before the first one of 32 bits; 32 of 0. No core is asked for an instruction. */
static inline int32_t nn_leading_zeros(uint32_t value) {
    int32_t zeros = 0;
    if (value == 0) {
        return 32;
    }
    for (int32_t step = 16; step > 0; step >>= 1) {
        if (value >> (32 - step) == 0) {
            zeros += step;
            value <<= step;
        }
    }
    return zeros;
}

/* value * 2^bits, at the end of int32's range where it does not fit; bits 0 to 30. */
static inline int32_t nn_saturating_shift(int32_t value, int32_t bits) {
    const int32_t limit = INT32_MAX >> bits;
    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit - 1 ? INT32_MIN : value * (1 << bits);
}

/* 1 / (1 + x) of a Q0.31 number in [0, 1), as Q0.31: three of Newton's steps, from
 * 48/17 - 32/17 * (1 + x)/2. */
static inline int32_t nn_one_over_one_plus(int32_t x) {
    const int32_t half = (int32_t)(((uint32_t)x + 0x80000000U) >> 1);
    int32_t y = 1515870810 + nn_high_multiply(half, -1010580540);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t error = (1 << 29) - nn_high_multiply(half, y);
        y += nn_saturating_shift(nn_high_multiply(y, error), 2);
    }
    return nn_saturating_shift(y, 1);
}

/* 1 / sqrt(x) = the result * 2^(*shift - 31), for x >= 0; of 0 as of 1. Five of Newton's steps,
 * from 1, for x scaled by a power of 4 to [1/2, 2), in Q3.28. */
static inline int32_t nn_inverse_root(int32_t x, int32_t *shift) {
    int32_t right = 11, pairs, half, y = 1 << 28;
    if (x <= 1) {
        *shift = 0;
        return INT32_MAX;
    }
    for (; x >= 1 << 29; x >>= 2) {
        right++;
    }
    pairs = (nn_leading_zeros((uint32_t)x) - 1) / 2 - 1;
    right -= pairs;
    half = nn_rounding_shift((x << (2 * pairs)) >> 1, 1);
    for (int32_t step = 0; step < 5; step++) {
        const int32_t square = nn_high_multiply(y, y);
        const int32_t cube = nn_saturating_shift(nn_high_multiply(square, y), 6);
        const int32_t much = nn_high_multiply((1 << 28) + (1 << 27), y);
        y = nn_saturating_shift(much - nn_high_multiply(half, cube), 3);
    }
    y = nn_high_multiply(y, 1518500250); /* sqrt(1/2) as Q0.31 */
    if (right < 0) {
        y = (int32_t)((uint32_t)y << -right);
        right = 0;
    }
    *shift = -right;
    return y;
}

#endif
