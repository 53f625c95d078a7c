/* What these kernels share: their constants, and requantisation from products of 32 bits.
 *
 * Inputs are taken as u = x + 128, weights as v = w + 128: the core loads and extracts natural
 * bytes in one instruction, signed ones in two or three. What that adds to a sum is taken off its
 * bias and, for weights, by the sum of a pixel's inputs.
 *
 * The reference's two roundings of value * m * 2^-(31 + e), e >= 1, are one (nn_requantise):
 *   (value * m + 2^30 + 2^(30 + e) - negative * 2^31) >> (31 + e)
 * With |value| < 2^20 and m in pieces of 11, 10 and 10 bits no product leaves 32 bits, and shifts
 * one after the other round as one of them does. The output's zero point is in the rounding
 * constant. Without outputs below the zero point (mode "plain") negative values need no care.
 */
#ifndef NN_MUL32_SCALE_H
#define NN_MUL32_SCALE_H

#include "nn_conv.h"

typedef enum { NN_MUL32_PLAIN = 0, NN_MUL32_ODD = 1, NN_MUL32_GENERAL = 2 } nn_mul32_mode;

#define NN_MUL32_LIMIT ((1 << 20) - 1) /* of values; larger ones put out what this one does */
#define NN_MUL32_BYTES 0x80808080U     /* four signed bytes to natural ones, by exclusive or */
#define NN_MUL32_PAIRS 0x00FF00FFU     /* every other byte of a word */

typedef struct {
    nn_conv_constants common;
    int32_t mode; /* nn_mul32_mode */
    int32_t
        wide; /* whether a value may be beyond the limit; in mode "general" it does not matter */
    int32_t reserved[2];
} nn_mul32_head;

/* Of a channel: nn_channel with its shift's negative, 1 to 11, and with what natural inputs (and
 * weights) add taken off the bias; in mode "general" the shift itself. */
typedef nn_channel nn_mul32_channel;

static inline const nn_mul32_channel *nn_mul32_channels(const void *constants) {
    return (const nn_mul32_channel *)(const void *)((const nn_mul32_head *)constants + 1);
}

/* The weights behind `channels` channels. */
static inline const uint32_t *nn_mul32_weights(const void *constants, int32_t channels) {
    const size_t head = sizeof(nn_mul32_head) + (size_t)channels * sizeof(nn_mul32_channel) + 15;
    return (const uint32_t *)(const void *)((const int8_t *)constants + head / 16 * 16);
}

/* A factor in pieces. */
typedef struct {
    int32_t low, middle, high; /* 11, 10 and 10 bits */
    int32_t offset, shift;
} nn_mul32_factor;

static inline nn_mul32_factor nn_mul32_split(int32_t multiplier, int32_t exponent,
                                             int32_t zero_point) {
    const nn_mul32_factor f = {multiplier & 0x7FF, multiplier >> 11 & 0x3FF, multiplier >> 21,
                               512 + (2 * zero_point + 1) * (1 << (9 + exponent)), 10 + exponent};
    return f;
}

/* A value as an output before it is clamped; `odd`: it may be below the zero point, `wide`: its
 * size may be beyond the limit. */
static inline __attribute__((always_inline)) int32_t nn_mul32_scale(int32_t value,
                                                                    const nn_mul32_factor *f,
                                                                    int odd, int wide) {
    if (wide) {
        value = nn_clamp(value, -NN_MUL32_LIMIT, NN_MUL32_LIMIT);
    }
    int32_t sum = value * f->low >> 11;
    sum = (sum + value * f->middle) >> 10;
    sum += value * f->high + f->offset;
    if (odd && value < 0) {
        sum -= 1024;
    }
    return sum >> f->shift;
}

/* round(value * multiplier / 2^31), halves up, by 16-bit halves; `value` below 2^29 in size,
 * `multiplier` not negative. */
static inline int32_t nn_mul32_high_multiply(int32_t value, int32_t multiplier) {
    const uint32_t v0 = (uint32_t)value & 0xFFFF, m0 = (uint32_t)multiplier & 0xFFFF;
    const int32_t v1 = value >> 16, m1 = multiplier >> 16;
    const uint32_t cross = v0 * (uint32_t)m1;
    const int32_t middle =
        (int32_t)((v0 * m0 >> 16) + (cross & 0xFFFF)) + v1 * (int32_t)m0 + 0x4000;
    const int32_t high = v1 * m1 + (int32_t)(cross >> 16) + (middle >> 16);
    return 2 * high + (middle >> 15 & 1);
}

/* Element-wise operators: one factor for all. */
typedef struct {
    int32_t multiplier, exponent, offset;
} nn_mul32_rounding;

/* Sets `r` up; 0 if `multiplier` and `shift` are none that it can stand for. */
static inline int nn_mul32_find(nn_mul32_rounding *r, int32_t multiplier, int32_t shift,
                                int32_t zero_point) {
    if (multiplier < 0 || shift > -1 || shift < -22) {
        return 0;
    }
    r->multiplier = multiplier;
    r->exponent = -shift;
    r->offset = (1 << (-shift - 1)) + zero_point * (1 << -shift);
    return 1;
}

/* What nn_requantise gives, and the zero point. */
static inline int32_t nn_mul32_round(int32_t value, const nn_mul32_rounding *r) {
    const int32_t q = nn_mul32_high_multiply(value, r->multiplier);
    return (q + (q >> 31) + r->offset) >> r->exponent;
}

/* What is rare, or called with few arguments known: one copy, also where gcc would make one a call.
 */
#if defined(__xtensa__)
#define NN_MUL32_ONCE NN_OUTLINE __attribute__((noclone))
#else
#define NN_MUL32_ONCE NN_OUTLINE
#endif

/* The compiler would put operations off, or load ahead, until registers run out. */
#define NN_MUL32_NOW(value) __asm volatile("" : "+r"(value))

/* x + 128; the compiler is not told that a byte was loaded, or it would extend the result again. */
static inline int32_t nn_mul32_natural(const int8_t *x) {
    uint32_t byte = *(const uint8_t *)x;
    __asm("" : "+r"(byte));
    return (int32_t)(byte ^ 0x80U);
}

/* What nn_dense_output gives for a sum whose channel's factor is at most 1 and at least 2^-12: the
 * factor's 47 bits in pieces, of a size below 2^20. */
static inline int8_t nn_mul32_dense_output(int32_t sum, const nn_dense_channel *channel,
                                           const nn_conv_constants *common) {
    const int32_t exponent = -channel->shift;
    const uint32_t multiplier = (uint32_t)channel->multiplier, low = (uint32_t)channel->low;
    if (exponent < 0 || exponent > 11 || multiplier < 1U << 30) {
        return nn_dense_output(sum, channel, common);
    }
    const int32_t total = nn_wrapping_add(sum, channel->bias);
    uint32_t size = total < 0 ? 0U - (uint32_t)total : (uint32_t)total;
    size = size > NN_MUL32_LIMIT ? NN_MUL32_LIMIT : size;
    uint32_t product = size * (low & 0xFFF) >> 12;
    product = (product + size * (low >> 12 | (multiplier & 0xFF) << 4)) >> 12;
    product = (product + size * (multiplier >> 8 & 0xFFF)) >> 12;
    product += size * (multiplier >> 20) + ((uint32_t)1 << (10 + exponent));
    const int32_t scaled = (int32_t)(product >> (11 + exponent));
    return (int8_t)nn_clamp((total < 0 ? -scaled : scaled) + common->output_zero_point,
                            common->clamp_min, common->clamp_max);
}

#endif
