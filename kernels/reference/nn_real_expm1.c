/* exp(x) - 1 of float32, in integers. */
#include "nn_real.h"
#include "nn_real_parts.h"

float nn_real_expm1(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~NN_REAL_SIGN;
    const nn_real_parts p = nn_real_split(bits);
    if (bits == size || size < 0x33000000U || size > NN_REAL_INFINITE) { /* 2^-25, or NaN */
        return x;
    }
    if (size >= 0x42000000U) { /* 32 */
        return -1.0F;
    }
    if (size < 0x3E800000U) { /* 1/4: -y (1 - y / 2 + y^2 / 6 - ...), y in Q32 */
        static const int64_t factors[7] = {(1LL << 32) / 5040, (1LL << 32) / 720, (1LL << 32) / 120,
                                           (1LL << 32) / 24,   (1LL << 32) / 6,   (1LL << 32) / 2,
                                           1LL << 32};
        const int64_t y = (int64_t)nn_real_shift((uint64_t)p.mantissa << 6, 124 - p.exponent);
        int64_t q = (1LL << 32) / 40320;
        for (int32_t i = 0; i < 7; i++) {
            q = factors[i] - (y * q >> 32);
        }
        return nn_real_join(NN_REAL_SIGN, p.mantissa * (uint64_t)q >> 4, p.exponent - 178);
    }
    const nn_real_power e = nn_real_power_of(p, 1);
    const uint64_t power = nn_real_shift(e.mantissa, -1 - e.exponent); /* Q32 */
    return nn_real_join(NN_REAL_SIGN, ((uint64_t)1 << 32) - power, -32);
}
