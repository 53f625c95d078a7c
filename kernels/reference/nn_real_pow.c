/* Powers of float32, in integers: 2^(b * log2(a)). */
#include "nn_real.h"
#include "nn_real_log_parts.h"

/* The upper half of a product. */
static uint64_t high_half(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The natural logarithm of a finite number above 0, Q55. */
static int64_t logarithm(uint32_t bits) {
    const nn_real_point p = nn_real_point_of(bits);
    int64_t q = (1LL << 35) / 7;
    for (int32_t i = 6; i > 0; i--) {
        q = (1LL << 35) / i - (p.r * q >> 32);
    }
    return p.exponent * NN_REAL_LN2_FINE + nn_real_logarithms[p.part] + (p.r * q >> 12);
}

/* Bit 0: not a whole number; bit 1: an odd one. */
static uint32_t kind_of(uint32_t bits) {
    const int32_t exponent = (int32_t)(bits >> 23 & 255);
    const uint32_t mantissa = (bits & (NN_REAL_HIDDEN - 1)) | NN_REAL_HIDDEN;
    if (exponent < 127) {
        return bits << 1 != 0;
    }
    if (exponent > 150) {
        return 0;
    }
    return (mantissa & ((1U << (150 - exponent)) - 1)) != 0
               ? 1
               : (mantissa >> (150 - exponent) & 1) * 2;
}

/* |a|^|b|, or one over it, of a finite a above 0. */
static float power(uint32_t sign, uint32_t a, uint32_t b, int inverse) {
    const int64_t total = logarithm(a);
    const nn_real_parts p = nn_real_split(b);
    uint64_t size = total < 0 ? 0U - (uint64_t)total : (uint64_t)total, steps;
    int32_t zeros, right;
    if (size == 0 || b == 0) {
        return nn_float_of(sign | 0x3F800000U);
    }
    zeros = NN_CLZ64(size);
    steps = high_half(size << zeros, p.mantissa * (uint64_t)NN_REAL_LOG2_E);
    right = 147 - p.exponent + zeros; /* Q32 */
    inverse ^= total < 0;
    if (right < 0 && steps != 0 && NN_CLZ64(steps) <= -right) {
        steps = ~(uint64_t)0;
    } else {
        steps = right < 0 ? steps << -right : nn_real_shift(steps, right);
    }
    if (steps >= (uint64_t)256 << 32) {
        return nn_float_of(sign | (inverse ? 0 : NN_REAL_INFINITE));
    }
    const nn_real_power result = nn_real_power_of_steps(inverse ? -(int64_t)steps : (int64_t)steps);
    return nn_real_join(sign, result.mantissa, result.exponent - 31);
}

float nn_real_pow(float base, float exponent) {
    const uint32_t x = nn_float_bits(base), y = nn_float_bits(exponent), kind = kind_of(y);
    const uint32_t a = x & ~NN_REAL_SIGN, b = y & ~NN_REAL_SIGN;
    const uint32_t sign = kind == 2 ? x & NN_REAL_SIGN : 0;
    if (b == 0 || x == 0x3F800000U) {
        return 1.0F;
    }
    if (a > NN_REAL_INFINITE || b > NN_REAL_INFINITE) {
        return nn_float_of(NN_REAL_QUIET_NAN);
    }
    if (a == 0 || a == NN_REAL_INFINITE || b == NN_REAL_INFINITE) {
        if (a == 0x3F800000U) {
            return 1.0F;
        }
        return nn_float_of(sign | ((a > 0x3F800000U) == (y == b) ? NN_REAL_INFINITE : 0));
    }
    if (a != x && kind == 1) {
        return nn_float_of(NN_REAL_QUIET_NAN);
    }
    return power(sign, a, b, y != b);
}
