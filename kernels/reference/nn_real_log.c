/* The natural logarithm of float32, in integers. */
#include "nn_real.h"
#include "nn_real_log_parts.h"

float nn_real_log(float x) {
    const uint32_t bits = nn_float_bits(x);
    static const int64_t factors[6] = {(1LL << 32) / 6, (1LL << 32) / 5, (1LL << 32) / 4,
                                       (1LL << 32) / 3, (1LL << 32) / 2, 1LL << 32};
    int64_t q = (1LL << 32) / 7, total;
    uint64_t size;
    if (bits << 1 == 0) {
        return nn_float_of(NN_REAL_SIGN | NN_REAL_INFINITE);
    }
    if (bits >= NN_REAL_INFINITE) { /* infinite, below 0, or NaN */
        return bits == NN_REAL_INFINITE ? x : nn_float_of(NN_REAL_QUIET_NAN);
    }
    const nn_real_point p = nn_real_point_of(bits);
    for (int32_t i = 0; i < 6; i++) {
        q = factors[i] - (p.r * q >> 32);
    }
    total = p.exponent * NN_REAL_LN2_FINE + nn_real_logarithms[p.part] + (p.r * q >> 9);
    if (total == 0) {
        return 0.0F;
    }
    size = total < 0 ? 0 - (uint64_t)total : (uint64_t)total;
    return size >> 52 != 0 ? nn_real_join(total < 0 ? NN_REAL_SIGN : 0, size >> 11, -44)
                           : nn_real_join(total < 0 ? NN_REAL_SIGN : 0, size, -55);
}
