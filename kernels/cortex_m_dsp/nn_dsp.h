/* The DSP extension's instructions as functions, and what the family's kernels share.
 *
 * On a core that has them (Armv7E-M, Armv8-M Main with DSP) each is one instruction; elsewhere a
 * model in C, so that the kernels run, and are tested, on any machine.
 */
#ifndef NN_DSP_H
#define NN_DSP_H

#include "nn_conv.h"
#include "nn_cortex_m_dsp.h"

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define NN_DSP 1
#else
#define NN_DSP 0
#endif

/* ---- instructions: w.lo and w.hi are the halves of w, as int16 ------------------------------- */

#if NN_DSP

#define NN_DSP_2(name, text)                                                                       \
    static inline uint32_t name(uint32_t a) {                                                      \
        uint32_t result;                                                                           \
        __asm(text : "=r"(result) : "r"(a));                                                       \
        return result;                                                                             \
    }
#define NN_DSP_3(name, text)                                                                       \
    static inline uint32_t name(uint32_t a, uint32_t b) {                                          \
        uint32_t result;                                                                           \
        __asm(text : "=r"(result) : "r"(a), "r"(b));                                               \
        return result;                                                                             \
    }
#define NN_DSP_4(name, text)                                                                       \
    static inline int32_t name(uint32_t a, uint32_t b, int32_t c) {                                \
        int32_t result;                                                                            \
        __asm(text : "=r"(result) : "r"(a), "r"(b), "r"(c));                                       \
        return result;                                                                             \
    }

NN_DSP_2(nn_sxtb16, "sxtb16 %0, %1")
NN_DSP_2(nn_sxtb16_ror8, "sxtb16 %0, %1, ror #8")
NN_DSP_3(nn_sxtab16, "sxtab16 %0, %1, %2")
NN_DSP_3(nn_sxtab16_ror8, "sxtab16 %0, %1, %2, ror #8")
NN_DSP_3(nn_pkhbt, "pkhbt %0, %1, %2, lsl #16")
NN_DSP_3(nn_pkhtb, "pkhtb %0, %1, %2, asr #16")
NN_DSP_3(nn_ssub16, "ssub16 %0, %1, %2")
NN_DSP_4(nn_smlad, "smlad %0, %1, %2, %3")
NN_DSP_4(nn_smlabb, "smlabb %0, %1, %2, %3")
NN_DSP_4(nn_smlatt, "smlatt %0, %1, %2, %3")

/* c + floor(a * b / 2^32) */
static inline int32_t nn_smmla(int32_t a, int32_t b, int32_t c) {
    int32_t result;
    __asm("smmla %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

/* c + round(a * b / 2^32), halves up */
static inline int32_t nn_smmlar(int32_t a, int32_t b, int32_t c) {
    int32_t result;
    __asm("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

static inline int32_t nn_ssat8(int32_t a) {
    int32_t result;
    __asm("ssat %0, #8, %1" : "=r"(result) : "r"(a));
    return result;
}

/* c + |a - b| of each of four bytes, unsigned */
static inline uint32_t nn_usada8(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result;
    __asm("usada8 %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

/* The larger of each of four int8. */
static inline uint32_t nn_max8(uint32_t a, uint32_t b) {
    uint32_t result;
    __asm("ssub8 %0, %1, %2\n sel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}

/* The larger of each of two int16. */
static inline uint32_t nn_max16(uint32_t a, uint32_t b) {
    uint32_t result;
    __asm("ssub16 %0, %1, %2\n sel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}

/* The smaller. */
static inline uint32_t nn_min8(uint32_t a, uint32_t b) {
    uint32_t result;
    __asm("ssub8 %0, %1, %2\n sel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}

#else

static inline int32_t nn_lo(uint32_t w) {
    return (int16_t)(uint16_t)w;
}
static inline int32_t nn_hi(uint32_t w) {
    return (int16_t)(uint16_t)(w >> 16);
}
static inline uint32_t nn_halves(int32_t lo, int32_t hi) {
    return ((uint32_t)hi << 16) | ((uint32_t)lo & 0xFFFFU);
}
/* Byte i of w, as int8. */
static inline int32_t nn_byte(uint32_t w, int32_t i) {
    return (int8_t)(uint8_t)(w >> (8 * i));
}
/* (lo, hi) bytes 0 and 2 */
static inline uint32_t nn_sxtb16(uint32_t a) {
    return nn_halves(nn_byte(a, 0), nn_byte(a, 2));
}
/* (lo, hi) bytes 1 and 3 */
static inline uint32_t nn_sxtb16_ror8(uint32_t a) {
    return nn_halves(nn_byte(a, 1), nn_byte(a, 3));
}
static inline uint32_t nn_ssub16(uint32_t a, uint32_t b) {
    return nn_halves(nn_lo(a) - nn_lo(b), nn_hi(a) - nn_hi(b));
}
static inline uint32_t nn_sxtab16(uint32_t a, uint32_t b) {
    return nn_halves(nn_lo(a) + nn_byte(b, 0), nn_hi(a) + nn_byte(b, 2));
}
static inline uint32_t nn_sxtab16_ror8(uint32_t a, uint32_t b) {
    return nn_halves(nn_lo(a) + nn_byte(b, 1), nn_hi(a) + nn_byte(b, 3));
}
/* (a.lo, b.lo) */
static inline uint32_t nn_pkhbt(uint32_t a, uint32_t b) {
    return nn_halves(nn_lo(a), nn_lo(b));
}
/* (b.hi, a.hi) */
static inline uint32_t nn_pkhtb(uint32_t a, uint32_t b) {
    return nn_halves(nn_hi(b), nn_hi(a));
}
static inline uint32_t nn_max8(uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (int32_t i = 0; i < 4; i++) {
        result |= ((uint32_t)nn_max(nn_byte(a, i), nn_byte(b, i)) & 0xFFU) << (8 * i);
    }
    return result;
}
static inline uint32_t nn_max16(uint32_t a, uint32_t b) {
    return nn_halves(nn_max(nn_lo(a), nn_lo(b)), nn_max(nn_hi(a), nn_hi(b)));
}
static inline uint32_t nn_min8(uint32_t a, uint32_t b) {
    return ~nn_max8(~a, ~b);
}
static inline int32_t nn_smlad(uint32_t a, uint32_t b, int32_t c) {
    /* Only lo * lo + hi * hi = 2^31 leaves 31 bits; everything wraps. */
    const uint32_t sum = (uint32_t)(nn_lo(a) * nn_lo(b)) + (uint32_t)(nn_hi(a) * nn_hi(b));
    return (int32_t)(sum + (uint32_t)c);
}
static inline int32_t nn_smlabb(uint32_t a, uint32_t b, int32_t c) {
    return nn_wrapping_add(nn_lo(a) * nn_lo(b), c);
}
static inline int32_t nn_smlatt(uint32_t a, uint32_t b, int32_t c) {
    return nn_wrapping_add(nn_hi(a) * nn_hi(b), c);
}
static inline int32_t nn_smmla(int32_t a, int32_t b, int32_t c) {
    return nn_wrapping_add((int32_t)(((int64_t)a * b) >> 32), c);
}
static inline int32_t nn_smmlar(int32_t a, int32_t b, int32_t c) {
    return nn_wrapping_add((int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32), c);
}
static inline int32_t nn_ssat8(int32_t a) {
    return nn_clamp(a, -128, 127);
}
static inline uint32_t nn_usada8(uint32_t a, uint32_t b, uint32_t c) {
    for (int32_t i = 0; i < 4; i++) {
        const int32_t apart = (int32_t)((a >> (8 * i)) & 0xFFU) - (int32_t)((b >> (8 * i)) & 0xFFU);
        c += (uint32_t)(apart < 0 ? -apart : apart);
    }
    return c;
}

#endif

#define NN_DSP_BLOCK 4 /* channels in a word */

/* Four bytes at any address; the cores read and write words anywhere. */
static inline uint32_t nn_load4(const void *from) {
    uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

static inline void nn_store4(void *to, uint32_t word) {
    __builtin_memcpy(to, &word, sizeof word);
}

/* The first `count` bytes of a word, 1 to 3; zeros behind them. */
static inline uint32_t nn_load_tail(const int8_t *from, int32_t count) {
    uint32_t word = (uint8_t)from[0];
    if (count > 1) {
        word |= (uint32_t)(uint8_t)from[1] << 8;
    }
    if (count > 2) {
        word |= (uint32_t)(uint8_t)from[2] << 16;
    }
    return word;
}

/* Four times the same byte; twice the same half. */
static inline uint32_t nn_times4(int32_t value) {
    return ((uint32_t)value & 0xFFU) * 0x01010101U;
}

static inline uint32_t nn_times2(int32_t value) {
    return ((uint32_t)value & 0xFFFFU) * 0x00010001U;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* One output channel. With sum the channel's products,
 *   t = 2 * sum + bias                                          (bias: twice nn_channel's)
 *   output = (offset + round(t * multiplier / 2^32) - (t < 0)) >> shift, saturated to int8,
 * where shift = -nn_channel's, 1 at least, and offset = 2^(shift - 1) + output_zero_point *
 * 2^shift. That is nn_requantise: round(t * multiplier / 2^32) is its inner quotient, and where the
 * quotient's sign is not that of t it is 0, which both ways round to 0. A channel whose output
 * cannot change has multiplier 0 instead. The packing sees to it that nothing overflows; channels
 * where something might are "general": theirs are as in nn_channel, offset unused. */
typedef struct {
    int32_t bias, multiplier, offset, shift;
} nn_dsp_channel;

/* A convolution's or dense layer's block begins with this. */
typedef struct {
    nn_conv_constants common;
    int32_t general_first, general_end; /* channels with plain arithmetic; for each its neighbours
                                           that are computed together with it */
    int32_t unused[2];
} nn_dsp_constants;

/* A sum without its bias as an output element, not yet clamped; of a general channel: anything. */
static inline int32_t nn_dsp_output(int32_t sum, const nn_dsp_channel *c) {
    const int32_t t = nn_wrapping_add(c->bias, (int32_t)((uint32_t)sum << 1));
    return nn_ssat8((nn_smmlar(t, c->multiplier, c->offset) + (t >> 31)) >> (c->shift & 31));
}

/* The same for a general channel, clamped. */
static inline int8_t nn_dsp_general_output(int32_t sum, const nn_dsp_channel *channel,
                                           const nn_conv_constants *common) {
    const nn_channel plain = {channel->bias, channel->multiplier, channel->shift};
    return nn_conv_output(sum, &plain, common);
}

/* Clamps int8 in place; nothing to do if the limits are those of int8. */
static inline void nn_dsp_clamp(int8_t *data, int32_t count, int32_t low, int32_t high) {
    const uint32_t lows = nn_times4(low), highs = nn_times4(high);
    if (low <= -128 && high >= 127) {
        return;
    }
#pragma GCC unroll 2
    for (; count >= 4; count -= 4, data += 4) {
        nn_store4(data, nn_min8(nn_max8(nn_load4(data), lows), highs));
    }
#pragma GCC unroll 1
    for (; count > 0; count--, data++) {
        *data = (int8_t)nn_clamp(*data, low, high);
    }
}

/* Clamps int16 in place; nothing to do if the limits are those of int16. */
static inline void nn_dsp_clamp_wide(int16_t *data, int32_t count, int32_t low, int32_t high) {
    if (low > -32768 || high < 32767) {
#pragma GCC unroll 2
        for (; count > 0; count--, data++) {
            *data = (int16_t)nn_clamp(*data, low, high);
        }
    }
}

/* Pixel by pixel, for what nn_dsp_clamp_pixels is given. */
NN_OUTLINE void nn_dsp_clamp_apart(int8_t *data, int32_t pixels, int32_t channels, int32_t stride,
                                   const nn_conv_constants *common) {
#pragma GCC unroll 1
    for (; pixels > 0; pixels--, data += stride) {
        nn_dsp_clamp(data, channels, common->clamp_min, common->clamp_max);
    }
}

/* Clamps `pixels` of `channels` each, which are `stride` bytes apart; nothing to do if the limits
 * are those of int8. */
static inline void nn_dsp_clamp_pixels(int8_t *data, int32_t pixels, int32_t channels,
                                       int32_t stride, const nn_conv_constants *common) {
    if (common->clamp_min > -128 || common->clamp_max < 127) {
        const int joined = stride == channels;
        nn_dsp_clamp_apart(data, joined ? 1 : pixels, joined ? pixels * channels : channels, stride,
                           common);
    }
}

#endif
