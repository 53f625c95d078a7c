/* The error function of float32, in integers. */
#include "nn_real.h"
#include "nn_real_tail.h"

float nn_real_erf(float x) {
    const uint32_t bits = nn_float_bits(x), sign = bits & NN_REAL_SIGN, size = bits & ~NN_REAL_SIGN;
    const nn_real_parts p = nn_real_split(size);
    if (size == 0 || size > NN_REAL_INFINITE) { /* 0, or NaN */
        return x;
    }
    if (size >= 0x40800000U) { /* 4 */
        return nn_float_of(sign | 0x3F800000U);
    }
    if (size < 0x3F000000U) { /* 1/2: a series in y, the square in Q32 */
        static const int64_t factors[9] = {7070LL,      64105LL,      517773LL,
                                           3671479LL,   22436813LL,   115389324LL,
                                           484635162LL, 1615450540LL, 4846351620LL};
        const int64_t y =
            (int64_t)nn_real_shift((uint64_t)p.mantissa * p.mantissa, 268 - 2 * p.exponent);
        int64_t q = 0;
        for (int32_t i = 0; i < 9; i++) {
            q = factors[i] - (y * q >> 32);
        }
        return nn_real_join(sign, p.mantissa * (uint64_t)q >> 4, p.exponent - 178);
    }
    const nn_real_power tail = nn_real_tail(p);
    return nn_real_join(sign, ((uint64_t)1 << 51) - nn_real_shift(tail.mantissa, -tail.exponent),
                        -51);
}
