/* exp, log and tanh of float32, in integers. Qn: a fixed-point number with n fractional bits. */
#include "nn_float.h"
#include "nn_real.h"

#define SIGN 0x80000000U
#define INFINITE 0x7F800000U
#define QUIET_NAN 0x7FC00000U
#define HIDDEN 0x800000U

#define LOG2_E 396564993198U         /* Q38 */
#define LN2 2977044472U              /* Q32 */
#define LN2_FINE 24973259072661437LL /* Q55 */
#define FIRST_PART 22                /* of the parts of length 1/32 of logarithms */

/* 2^(i / 32), Q31. */
static const uint32_t powers[32] = {
    2147483648U, 2194507417U, 2242560872U, 2291666561U, 2341847524U, 2393127307U, 2445529972U,
    2499080105U, 2553802834U, 2609723834U, 2666869345U, 2725266179U, 2784941738U, 2845924021U,
    2908241642U, 2971923842U, 3037000500U, 3103502151U, 3171459999U, 3240905930U, 3311872529U,
    3384393094U, 3458501653U, 3534232978U, 3611622603U, 3690706840U, 3771522796U, 3854108391U,
    3938502376U, 4024744348U, 4112874773U, 4202935003U};

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

/* |x| = mantissa * 2^(exponent - 150). */
typedef struct {
    uint32_t mantissa;
    int32_t exponent;
} parts;

static parts split(uint32_t bits) {
    const int32_t exponent = (int32_t)(bits >> 23 & 255);
    const parts p = {(bits & (HIDDEN - 1)) | (exponent > 0 ? HIDDEN : 0), nn_max(exponent, 1)};
    return p;
}

/* Shifts right by 0 or more. */
static uint64_t shift(uint64_t value, int32_t count) {
    return count > 63 ? 0 : value >> count;
}

/* m * 2^exponent, rounded to the nearest, halves to even; m is not 0, and below 2^53. */
static float join(uint32_t sign, uint64_t m, int32_t exponent) {
    const int32_t bits = 64 - __builtin_clzll(m);
    const int32_t leading = exponent + bits + 126; /* the biased exponent */
    int32_t drop = bits - 24;
    uint32_t result;
    if (leading > 254) {
        return nn_float_of(sign | INFINITE);
    }
    drop += leading < 1 ? 1 - leading : 0;
    if (drop > 62) {
        return nn_float_of(sign);
    }
    if (drop > 0) {
        const uint64_t half = (uint64_t)1 << (drop - 1), rest = m & (2 * half - 1);
        m >>= drop;
        m += rest > half || (rest == half && (m & 1) != 0);
    } else {
        m <<= -drop;
    }
    result = (uint32_t)m; /* with the hidden bit, which counts as one more of the exponent */
    return nn_float_of(sign | (result + (leading < 1 ? 0 : (uint32_t)(leading - 1) << 23)));
}

/* exp(x) = mantissa * 2^(exponent - 31), the mantissa from 2^31 to 2^32. */
typedef struct {
    uint64_t mantissa;
    int32_t exponent;
} power;

static power power_of(parts p, int negative) {
    const int64_t size = (int64_t)shift(p.mantissa * (uint64_t)LOG2_E, 156 - p.exponent); /* Q32 */
    const int64_t steps = negative ? -size : size;
    const uint32_t fraction = (uint32_t)steps;
    const uint64_t y = (uint64_t)((fraction & 0x7FFFFFFU) << 4) * LN2 >> 32; /* Q36 */
    const uint64_t square = y * y >> 36, cube = square * y >> 36, fourth = square * square >> 36;
    const uint32_t rest =
        (uint32_t)y + (uint32_t)(square >> 1) + (uint32_t)cube / 6 + (uint32_t)fourth / 24;
    const uint32_t start = powers[fraction >> 27];
    const power result = {start + ((uint64_t)start * rest >> 36), (int32_t)(steps >> 32)};
    return result;
}

float nn_real_exp(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~SIGN;
    power p;
    if (size >= 0x43000000U) { /* 128, or NaN */
        return size > INFINITE ? x : nn_float_of(bits == size ? INFINITE : 0);
    }
    p = power_of(split(bits), bits != size);
    return join(0, p.mantissa, p.exponent - 31);
}

float nn_real_log(float x) {
    const uint32_t bits = nn_float_bits(x);
    parts p = split(bits);
    int64_t q = ((int64_t)1 << 32) / 7, total;
    uint64_t size;
    int32_t part, r;
    if (bits << 1 == 0) {
        return nn_float_of(SIGN | INFINITE);
    }
    if (bits >= INFINITE) { /* infinite, below 0, or NaN */
        return bits == INFINITE ? x : nn_float_of(QUIET_NAN);
    }
    while (p.mantissa < HIDDEN) {
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
    for (int32_t divisor = 6; divisor > 0; divisor--) {
        q = ((int64_t)1 << 32) / divisor - (r * q >> 32);
    }
    total = p.exponent * LN2_FINE + logarithms[part] + (r * q >> 9);
    if (total == 0) {
        return 0.0F;
    }
    size = total < 0 ? 0 - (uint64_t)total : (uint64_t)total;
    return size >> 52 != 0 ? join(total < 0 ? SIGN : 0, size >> 11, -44)
                           : join(total < 0 ? SIGN : 0, size, -55);
}

/* over / under as Q31, over below under; the lowest bit is set where there is a rest. */
static uint64_t quotient_of(uint64_t over, uint64_t under) {
    uint64_t quotient = 0;
    for (int32_t i = 0; i < 31; i++) {
        over <<= 1;
        quotient <<= 1;
        if (over >= under) {
            over -= under;
            quotient |= 1;
        }
    }
    return quotient << 1 | (over != 0);
}

float nn_real_tanh(float x) {
    const uint32_t bits = nn_float_bits(x), sign = bits & SIGN, size = bits & ~SIGN;
    parts p = split(bits);
    if (size < 0x38800000U || size > INFINITE) { /* 2^-14, or NaN */
        return x;
    }
    if (size >= 0x41800000U) { /* 16 */
        return nn_float_of(sign | 0x3F800000U);
    }
    if (size < 0x3E000000U) { /* 1/8: x (1 - y / 3 + 2 y^2 / 15 - ...), y the square in Q32 */
        static const int64_t factors[4] = {(17LL << 32) / 315, (2LL << 32) / 15, (1LL << 32) / 3,
                                           1LL << 32};
        const int64_t y = (int64_t)shift((uint64_t)p.mantissa * p.mantissa, 268 - 2 * p.exponent);
        int64_t q = (62LL << 32) / 2835;
        for (int32_t i = 0; i < 4; i++) {
            q = factors[i] - (y * q >> 32);
        }
        return join(sign, p.mantissa * (uint64_t)q >> 4, p.exponent - 178);
    }
    p.exponent++; /* (1 - s) / (1 + s) of s = exp(-2 |x|), Q32 */
    const power e = power_of(p, 1);
    const uint64_t one = (uint64_t)1 << 32, s = shift(e.mantissa, -1 - e.exponent);
    return join(sign, quotient_of(one - s, one + s), -32);
}
