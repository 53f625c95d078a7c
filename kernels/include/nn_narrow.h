/* Logistic function and hyperbolic tangent of 16-bit numbers, in the fixed point of the reference
 * kernels.
 *
 * Qm.n is a signed number with m integer and n fractional bits, m + n = 15; results are Q0.15. No
 * table: a polynomial for the last quarter, a factor for each higher binary digit, Newton's method
 * for the quotient.
 */
#ifndef NN_NARROW_H
#define NN_NARROW_H

#include "nn_arith.h"

#define NN_NARROW_ONE 32767
#define NN_NARROW_EIGHTH 4096            /* 1/8 */
#define NN_NARROW_EXP_MINUS_EIGHTH 28918 /* exp(-1/8) */
#define NN_NARROW_THIRD 10923
#define NN_NARROW_Q2_ONE 8192         /* Q2.13, as the next two */
#define NN_NARROW_Q2_48_OVER_17 23130 /* 48/17 */
#define NN_NARROW_Q2_32_OVER_17 15420 /* 32/17 */
#define NN_NARROW_GATE_BITS 3         /* integer bits of a gate's sum */

/* round(a * b / 2^15), halves up. */
static inline int32_t nn_narrow_multiply(int32_t a, int32_t b) {
    return (a * b + 16384) >> 15;
}

static inline int32_t nn_narrow_clamp(int32_t value) {
    return nn_clamp(value, -32768, 32767);
}

/* exp of a number in [-1/4, 0), Q0.15: a Taylor series around -1/8. */
static inline int32_t nn_narrow_exp_quarter(int32_t a) {
    const int32_t x = a + NN_NARROW_EIGHTH;
    const int32_t x2 = nn_narrow_multiply(x, x);
    const int32_t x3 = nn_narrow_multiply(x2, x);
    const int32_t x4 = (nn_narrow_multiply(x2, x2) + 2) >> 2; /* over 4; never negative */
    const int32_t tail = nn_narrow_multiply(x4 + x3, NN_NARROW_THIRD) + x2;
    const int32_t half = nn_rounding_shift(tail, 1);
    return nn_min(NN_NARROW_EXP_MINUS_EIGHTH +
                      nn_narrow_multiply(x + half, NN_NARROW_EXP_MINUS_EIGHTH),
                  NN_NARROW_ONE);
}

/* exp of a <= 0 with that many integer bits (1 to 7), Q0.15. */
static inline int32_t nn_narrow_exp(int32_t a, int32_t integer_bits) {
    static const int16_t factors[6] = {25520, 19875, 12055,
                                       4435,  600,   11}; /* exp(-2^k), k = -2.. */
    const int32_t fraction = 15 - integer_bits, quarter = 1 << (fraction - 2);
    const int32_t rest = (a & (quarter - 1)) - quarter;
    int32_t result, digits = (rest - a) >> (fraction - 2);
    if (a == 0) {
        return NN_NARROW_ONE;
    }
    if (digits >= 1 << 6) { /* below -16: the factor of the next digit is 0 */
        return 0;
    }
    result = nn_narrow_exp_quarter(rest * (1 << integer_bits));
    for (int32_t k = 0; digits != 0; k++, digits >>= 1) {
        if ((digits & 1) != 0) {
            result = nn_narrow_multiply(result, factors[k]);
        }
    }
    return result;
}

/* 2 / (1 + a) as Q2.13, of a in [0, 1] as Q0.15. */
static inline int32_t nn_narrow_reciprocal(int32_t a) {
    const int32_t half = (a + NN_NARROW_ONE + 1) >> 1;
    int32_t x = NN_NARROW_Q2_48_OVER_17 + nn_narrow_multiply(half, -NN_NARROW_Q2_32_OVER_17);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t error = NN_NARROW_Q2_ONE - nn_narrow_multiply(half, x);
        x += nn_narrow_multiply(x, error) * 4;
    }
    return x;
}

/* 1 / (1 + exp(-a)) of Q3.12. */
static inline int32_t nn_narrow_logistic(int32_t a) {
    const int32_t size = a > 0 ? -a : a;
    int32_t result;
    if (a == 0) {
        return 16384;
    }
    result =
        nn_min(2 * nn_narrow_reciprocal(nn_narrow_exp(size, NN_NARROW_GATE_BITS)), NN_NARROW_ONE);
    return a > 0 ? result : NN_NARROW_ONE - result;
}

/* tanh of a number with that many integer bits (0 to 6). */
static inline int32_t nn_narrow_tanh(int32_t a, int32_t integer_bits) {
    const int32_t size = a > 0 ? -a : a;
    int32_t result;
    if (a == 0) {
        return 0;
    }
    result = nn_narrow_reciprocal(nn_narrow_exp(size, integer_bits + 1)) - NN_NARROW_Q2_ONE;
    result = nn_min(4 * result, NN_NARROW_ONE);
    return a > 0 ? result : -result;
}

#endif
