/* The natural logarithm of float32, in integers. Qn: a fixed-point number with n fractional bits.
 */
#include "nn_real.h"
#include "nn_real_parts.h"

#define LN2_FINE 24973259072661437LL /* Q55 */
#define FIRST_PART 22                /* of the parts of length 1/32 of logarithms */

/* For each part an inverse of its numbers, Q8, and that inverse's logarithm with the opposite
 * sign, Q55. */
static const uint16_t inverses[24] = {364, 349, 334, 321, 309, 298, 287, 278, 269, 256, 256, 245,
                                      237, 231, 224, 218, 213, 207, 202, 197, 193, 188, 184, 180};
static const int64_t logarithms[24] = {-12681287105390942LL,
                                       -11165125235174943LL,
                                       -9582346703246762LL,
                                       -8152008150861276LL,
                                       -6779316524505067LL,
                                       -5473352242073460LL,
                                       -4118263402748335LL,
                                       -2970346223504416LL,
                                       -1784648094071035LL,
                                       0LL,
                                       0LL,
                                       1582357164666582LL,
                                       2778443668846386LL,
                                       3702309596487196LL,
                                       4810975440528508LL,
                                       5789192914449761LL,
                                       6625165383584883LL,
                                       7654629619519037LL,
                                       8535573189300242LL,
                                       9438597828756934LL,
                                       10177675991544232LL,
                                       11123368000905991LL,
                                       11898210703460272LL,
                                       12690084272329768LL};

float nn_real_log(float x) {
    const uint32_t bits = nn_float_bits(x);
    nn_real_parts p = nn_real_split(bits);
    static const int64_t factors[6] = {(1LL << 32) / 6, (1LL << 32) / 5, (1LL << 32) / 4,
                                       (1LL << 32) / 3, (1LL << 32) / 2, 1LL << 32};
    int64_t q = (1LL << 32) / 7, total;
    uint64_t size;
    int32_t part, r;
    if (bits << 1 == 0) {
        return nn_float_of(NN_REAL_SIGN | NN_REAL_INFINITE);
    }
    if (bits >= NN_REAL_INFINITE) { /* infinite, below 0, or NaN */
        return bits == NN_REAL_INFINITE ? x : nn_float_of(NN_REAL_QUIET_NAN);
    }
    while (p.mantissa < NN_REAL_HIDDEN) {
        p.mantissa <<= 1;
        p.exponent--;
    }
    p.exponent -= 127;
    if (p.mantissa > 0xB504F3U) { /* above the root of 2: half of it, Q24 */
        p.exponent++;
    } else {
        p.mantissa <<= 1;
    }
    part = (int32_t)(p.mantissa >> 19) - FIRST_PART;
    r = (int32_t)(p.mantissa * inverses[part]); /* less 2^32 */
    for (int32_t i = 0; i < 6; i++) {
        q = factors[i] - (r * q >> 32);
    }
    total = p.exponent * LN2_FINE + logarithms[part] + (r * q >> 9);
    if (total == 0) {
        return 0.0F;
    }
    size = total < 0 ? 0 - (uint64_t)total : (uint64_t)total;
    return size >> 52 != 0 ? nn_real_join(total < 0 ? NN_REAL_SIGN : 0, size >> 11, -44)
                           : nn_real_join(total < 0 ? NN_REAL_SIGN : 0, size, -55);
}
