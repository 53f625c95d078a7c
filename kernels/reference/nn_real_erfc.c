/* The complementary error function of float32, in integers. */
#include "nn_real.h"
#include "nn_real_parts.h"

/* exp(-x^2). */
static nn_real_power bell(nn_real_parts x) {
    const uint64_t square =
        nn_real_shift((uint64_t)x.mantissa * x.mantissa, 268 - 2 * x.exponent); /* Q32 */
    const uint64_t low = (square & 0xFFFF) * NN_REAL_LOG2_E >> 16;
    return nn_real_power_of_steps(-(int64_t)(((square >> 16) * NN_REAL_LOG2_E + low) >> 22));
}

/* exp(x^2) erfc(x), Q32: a polynomial in 1 / (1 + x / 2) - 0.5825. */
static uint64_t scaled(nn_real_parts x) {
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

float nn_real_erfc(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~NN_REAL_SIGN;
    if (size >= 0x41280000U) { /* 10.5, or NaN */
        return size > NN_REAL_INFINITE ? x : bits == size ? 0.0F : 2.0F;
    }
    const nn_real_parts p = nn_real_split(size);
    const nn_real_power e = bell(p);
    const uint64_t product = e.mantissa * scaled(p) >> 12; /* Q51 */
    if (bits == size) {
        return nn_real_join(0, product, e.exponent - 51);
    }
    return nn_real_join(0, ((uint64_t)1 << 52) - nn_real_shift(product, -e.exponent), -51);
}
