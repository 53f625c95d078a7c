/* tanh of float32, in integers. */
#include "nn_real.h"
#include "nn_real_parts.h"

float nn_real_tanh(float x) {
    const uint32_t bits = nn_float_bits(x), sign = bits & NN_REAL_SIGN, size = bits & ~NN_REAL_SIGN;
    nn_real_parts p = nn_real_split(bits);
    if (size < 0x38800000U || size > NN_REAL_INFINITE) { /* 2^-14, or NaN */
        return x;
    }
    if (size >= 0x41800000U) { /* 16 */
        return nn_float_of(sign | 0x3F800000U);
    }
    if (size < 0x3E000000U) { /* 1/8: x (1 - y / 3 + 2 y^2 / 15 - ...), y the square in Q32 */
        static const int64_t factors[4] = {(17LL << 32) / 315, (2LL << 32) / 15, (1LL << 32) / 3,
                                           1LL << 32};
        const int64_t y =
            (int64_t)nn_real_shift((uint64_t)p.mantissa * p.mantissa, 268 - 2 * p.exponent);
        int64_t q = (62LL << 32) / 2835;
        for (int32_t i = 0; i < 4; i++) {
            q = factors[i] - (y * q >> 32);
        }
        return nn_real_join(sign, p.mantissa * (uint64_t)q >> 4, p.exponent - 178);
    }
    p.exponent++; /* (1 - s) / (1 + s) of s = exp(-2 |x|), Q32 */
    const nn_real_power e = nn_real_power_of(p, 1);
    const uint64_t one = (uint64_t)1 << 32, s = nn_real_shift(e.mantissa, -1 - e.exponent);
    return nn_real_join(sign, nn_real_quotient(one - s, one + s), -32);
}
