/* The complementary error function of float32, in integers. */
#include "nn_real.h"
#include "nn_real_tail.h"

float nn_real_erfc(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~NN_REAL_SIGN;
    if (size >= 0x41280000U) { /* 10.5, or NaN */
        return size > NN_REAL_INFINITE ? x : bits == size ? 0.0F : 2.0F;
    }
    const nn_real_power tail = nn_real_tail(nn_real_split(size));
    if (bits == size) {
        return nn_real_join(0, tail.mantissa, tail.exponent - 51);
    }
    return nn_real_join(0, ((uint64_t)1 << 52) - nn_real_shift(tail.mantissa, -tail.exponent), -51);
}
