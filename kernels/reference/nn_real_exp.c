/* exp of float32, in integers. */
#include "nn_real.h"
#include "nn_real_parts.h"

float nn_real_exp(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~NN_REAL_SIGN;
    nn_real_power p;
    if (size >= 0x43000000U) { /* 128, or NaN */
        return size > NN_REAL_INFINITE ? x : nn_float_of(bits == size ? NN_REAL_INFINITE : 0);
    }
    p = nn_real_power_of(nn_real_split(bits), bits != size);
    return nn_real_join(0, p.mantissa, p.exponent - 31);
}
