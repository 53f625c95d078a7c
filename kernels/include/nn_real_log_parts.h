/* Logarithms of float32, in parts of length 1/32. Qn: a fixed-point number with n fractional bits.
 */
#ifndef NN_REAL_LOG_PARTS_H
#define NN_REAL_LOG_PARTS_H

#include "nn_real_parts.h"

#define NN_REAL_LN2_FINE 24973259072661437LL /* Q55 */
#define NN_REAL_FIRST_PART 22                /* of the parts of length 1/32 of logarithms */

/* For each part an inverse of its numbers, Q8, and that inverse's logarithm with the opposite
 * sign, Q55. */
static const uint16_t nn_real_inverses[24] = {364, 349, 334, 321, 309, 298, 287, 278,
                                              269, 256, 256, 245, 237, 231, 224, 218,
                                              213, 207, 202, 197, 193, 188, 184, 180};
static const int64_t nn_real_logarithms[24] = {-12681287105390942LL,
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

/* x = (1 + r / 2^32) / inverse * 2^exponent, with the inverse of the part. */
typedef struct {
    int32_t exponent, part, r;
} nn_real_point;

/* Of a finite number above 0. */
static inline nn_real_point nn_real_point_of(uint32_t bits) {
    nn_real_parts p = nn_real_split(bits);
    nn_real_point point;
    while (p.mantissa < NN_REAL_HIDDEN) {
        p.mantissa <<= 1;
        p.exponent--;
    }
    point.exponent = p.exponent - 127;
    if (p.mantissa > 0xB504F3U) { /* above the root of 2: half of it, Q24 */
        point.exponent++;
    } else {
        p.mantissa <<= 1;
    }
    point.part = (int32_t)(p.mantissa >> 19) - NN_REAL_FIRST_PART;
    point.r = (int32_t)(p.mantissa * nn_real_inverses[point.part]);
    return point;
}

#endif
