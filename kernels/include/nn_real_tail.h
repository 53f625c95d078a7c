/* The complementary error function of numbers from 0 on, as an integer and an exponent. */
#ifndef NN_REAL_TAIL_H
#define NN_REAL_TAIL_H

#include "nn_real_parts.h"

/* exp(-x^2). */
static inline nn_real_power nn_real_bell(nn_real_parts x) {
    const uint64_t square =
        nn_real_shift((uint64_t)x.mantissa * x.mantissa, 268 - 2 * x.exponent); /* Q32 */
    const uint64_t low = (square & 0xFFFF) * NN_REAL_LOG2_E >> 16;
    return nn_real_power_of_steps(-(int64_t)(((square >> 16) * NN_REAL_LOG2_E + low) >> 22));
}

/* exp(x^2) erfc(x), Q32: a polynomial in 1 / (1 + x / 2) - 0.5825. */
static inline uint64_t nn_real_scaled_tail(nn_real_parts x) {
    static const int64_t factors[13] = {-149868501LL, 59975450LL,   227093831LL,  -230654576LL,
                                        -182481096LL, 489311862LL,  71473792LL,   -1000444903LL,
                                        -153372920LL, 2731139775LL, 4828249920LL, 4410281035LL,
                                        1429438836LL};
    const uint64_t place =
        nn_real_shift((uint64_t)x.mantissa << 13, 133 - x.exponent) | 1; /* Q30 */
    const uint64_t one = (uint64_t)1 << 31;
    const int64_t s = (int64_t)nn_real_quotient(one, one + place) - 2501818450LL;
    int64_t q = 0;
    for (int32_t i = 0; i < 13; i++) {
        q = factors[i] + (s * (q >> 1) >> 31);
    }
    return (uint64_t)q;
}

/* erfc(|x|) = mantissa * 2^(exponent - 51), for |x| below 10.5. */
static inline nn_real_power nn_real_tail(nn_real_parts x) {
    nn_real_power result = nn_real_bell(x);
    result.mantissa = result.mantissa * nn_real_scaled_tail(x) >> 12;
    return result;
}

#endif
