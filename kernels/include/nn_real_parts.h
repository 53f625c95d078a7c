/* Numbers of float32 as integers, and powers of e. Qn: a fixed-point number with n fractional bits.
 */
#ifndef NN_REAL_PARTS_H
#define NN_REAL_PARTS_H

#include "nn_float.h"

#define NN_REAL_SIGN 0x80000000U
#define NN_REAL_INFINITE 0x7F800000U
#define NN_REAL_QUIET_NAN 0x7FC00000U
#define NN_REAL_HIDDEN 0x800000U

#define NN_REAL_LOG2_E 396564993198U /* Q38 */
#define NN_REAL_LN2 2977044472U      /* Q32 */

/* |x| = mantissa * 2^(exponent - 150). */
typedef struct {
    uint32_t mantissa;
    int32_t exponent;
} nn_real_parts;

static inline nn_real_parts nn_real_split(uint32_t bits) {
    const int32_t exponent = (int32_t)(bits >> 23 & 255);
    const nn_real_parts p = {(bits & (NN_REAL_HIDDEN - 1)) | (exponent > 0 ? NN_REAL_HIDDEN : 0),
                             nn_max(exponent, 1)};
    return p;
}

/* Shifts right by 0 or more. */
static inline uint64_t nn_real_shift(uint64_t value, int32_t count) {
    return count > 63 ? 0 : value >> count;
}

/* m * 2^exponent, rounded to the nearest, halves to even; m is not 0, and below 2^53. */
static inline float nn_real_join(uint32_t sign, uint64_t m, int32_t exponent) {
    const int32_t bits = 64 - NN_CLZ64(m);
    const int32_t leading = exponent + bits + 126; /* the biased exponent */
    int32_t drop = bits - 24;
    uint32_t result;
    if (leading > 254) {
        return nn_float_of(sign | NN_REAL_INFINITE);
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

/* 2^(i / 32), Q31. */
static const uint32_t nn_real_powers[32] = {
    2147483648U, 2194507417U, 2242560872U, 2291666561U, 2341847524U, 2393127307U, 2445529972U,
    2499080105U, 2553802834U, 2609723834U, 2666869345U, 2725266179U, 2784941738U, 2845924021U,
    2908241642U, 2971923842U, 3037000500U, 3103502151U, 3171459999U, 3240905930U, 3311872529U,
    3384393094U, 3458501653U, 3534232978U, 3611622603U, 3690706840U, 3771522796U, 3854108391U,
    3938502376U, 4024744348U, 4112874773U, 4202935003U};

/* exp(x) = mantissa * 2^(exponent - 31), the mantissa from 2^31 to 2^32. */
typedef struct {
    uint64_t mantissa;
    int32_t exponent;
} nn_real_power;

/* 2^steps; the steps are Q32. */
static inline nn_real_power nn_real_power_of_steps(int64_t steps) {
    const uint32_t fraction = (uint32_t)steps;
    const uint64_t y = (uint64_t)((fraction & 0x7FFFFFFU) << 4) * NN_REAL_LN2 >> 32; /* Q36 */
    const uint64_t square = y * y >> 36, cube = square * y >> 36, fourth = square * square >> 36;
    const uint32_t rest =
        (uint32_t)y + (uint32_t)(square >> 1) + (uint32_t)cube / 6 + (uint32_t)fourth / 24;
    const uint32_t start = nn_real_powers[fraction >> 27];
    const nn_real_power result = {start + ((uint64_t)start * rest >> 36), (int32_t)(steps >> 32)};
    return result;
}

static inline nn_real_power nn_real_power_of(nn_real_parts p, int negative) {
    const int64_t size =
        (int64_t)nn_real_shift(p.mantissa * (uint64_t)NN_REAL_LOG2_E, 156 - p.exponent); /* Q32 */
    return nn_real_power_of_steps(negative ? -size : size);
}

/* exp(x), see nn_real.h. */
static inline float nn_real_exponential(float x) {
    const uint32_t bits = nn_float_bits(x), size = bits & ~NN_REAL_SIGN;
    nn_real_power p;
    if (size >= 0x43000000U) { /* 128, or NaN */
        return size > NN_REAL_INFINITE ? x : nn_float_of(bits == size ? NN_REAL_INFINITE : 0);
    }
    p = nn_real_power_of(nn_real_split(bits), bits != size);
    return nn_real_join(0, p.mantissa, p.exponent - 31);
}

/* over / under as Q32, over below under; the lowest bit is set where there is a rest. */
static inline uint64_t nn_real_quotient(uint64_t over, uint64_t under) {
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

#endif
