/* SOFTMAX of int8 in the fixed-point arithmetic of the reference kernel: Qm.n is a signed number
 * with m integer and n fractional bits. */
#ifndef NN_SOFTMAX_H
#define NN_SOFTMAX_H

#include "nn_arith.h"

#define NN_SUM_SHIFT 12             /* from Q0.31 to Q12.19 */
#define NN_SUM_LIMIT (1 << 28)      /* no probability reaches half a step any more */
#define NN_Q2_ONE (1 << 29)         /* Q2.29, as the next two */
#define NN_Q2_48_OVER_17 1515870810 /* round(48/17 * 2^29) */
#define NN_Q2_MINUS_32_OVER_17                                                                     \
    (-1010580540) /* round(-32/17 * 2^29); the sign matters to the rounding */

static inline int32_t nn_saturating_shift(int32_t value, int32_t bits) {
    const int32_t limit = INT32_MAX >> bits;
    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit - 1 ? INT32_MIN : value * (1 << bits);
}

/* 1/sum as a Q0.31 factor; *exponent is what a factor * exponential (Q0.31) is then shifted by to
 * become a multiple of 1/256. Three of Newton's steps, from 48/17 - 32/17 * d for d in [1/2, 1). */
static inline int32_t nn_reciprocal(int32_t sum, int32_t *exponent) {
    int32_t bits = 1, half, x;
    while (bits < 31 && sum >> bits != 0) {
        bits++;
    }
    half = (int32_t)(((uint32_t)sum << (32 - bits)) >> 1);
    x = NN_Q2_48_OVER_17 + nn_high_multiply(half, NN_Q2_MINUS_32_OVER_17);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t error = NN_Q2_ONE - nn_high_multiply(half, x);
        x += nn_saturating_shift(nn_high_multiply(x, error), 2);
    }
    *exponent = bits + 3;
    return nn_saturating_shift(x, 1);
}

/* The largest of a row's elements, and in *sum its exponentials' sum, NN_SUM_LIMIT at most. */
static inline int32_t nn_row_sum(const int32_t *exponentials, const int8_t *in, int32_t count,
                                 int32_t *sum) {
    int32_t largest = -128, total = 0;
    for (int32_t i = 0; i < count; i++) {
        largest = nn_max(largest, in[i]);
    }
    for (int32_t i = 0; i < count; i++) {
        total = nn_min(total + nn_rounding_shift(exponentials[largest - in[i]], NN_SUM_SHIFT),
                       NN_SUM_LIMIT);
    }
    *sum = total;
    return largest;
}

#endif
