/* What the plain kernels of int16 activations share: elements, sums of 64 bits, how these become
 * outputs, and interpolation in tables. Activations have zero point 0, so padding adds nothing. */
#ifndef NN_WIDE_H
#define NN_WIDE_H

#include "nn_arith.h"

#define NN_WIDE_MIN (-32768)
#define NN_WIDE_MAX 32767

/* The elements of row y from column x on. */
static inline const int16_t *nn_wide_in(const nn_view *view, int32_t y, int32_t x) {
    return (const int16_t *)(const void *)nn_pixel(view, y, x);
}

static inline int16_t *nn_wide_out(const nn_view *view, int32_t y, int32_t x) {
    return (int16_t *)(void *)nn_pixel(view, y, x);
}

/* Whether nothing lies between the pixels of a run. */
static inline int nn_wide_dense(const nn_view *view) {
    return view->pixel_stride == 2 * view->channels;
}

/* ---- layers with weights -------------------------------------------------------------------- */

/* A layer's constants: nn_wide_constants, then what each output channel has, then the weights. */
typedef struct {
    nn_wide_constants common;
    const void *channels;
    const int8_t *weights;
} nn_wide_block;

static inline nn_wide_block nn_wide_open(const void *constants, int32_t channels,
                                         size_t channel_bytes) {
    const size_t head = sizeof(nn_wide_constants) + (size_t)channels * channel_bytes + (size_t)15;
    nn_wide_block block;
    block.common = *(const nn_wide_constants *)constants;
    block.channels = (const nn_wide_constants *)constants + 1;
    block.weights = (const int8_t *)constants + head / 16 * 16;
    return block;
}

static inline int64_t nn_wide_bias(int32_t low, int32_t high) {
    return (int64_t)(((uint64_t)(uint32_t)high << 32) | (uint32_t)low);
}

/* A convolution's sum (without its bias) as an output element: a multiplier of 16 bits, rounded
 * once, halves up. Where all fits 32 bits, the multiplier's upper half is enough of the product:
 * the rounding constant has nothing below. */
static inline int16_t nn_wide_output(int64_t sum, const nn_wide_channel *channel,
                                     const nn_wide_constants *common) {
    const int32_t shift = channel->right_shift;
    int32_t scaled;
    if (common->sum_bits == 32) {
        const int32_t total = (int32_t)sum + channel->bias_low;
        const int32_t high = (int32_t)(((int64_t)total * (channel->multiplier * 65536)) >> 32);
        scaled = (high + (1 << (shift - 17))) >> (shift - 16);
    } else {
        const int64_t total = sum + nn_wide_bias(channel->bias_low, channel->bias_high);
        scaled = (int32_t)((total * channel->multiplier + ((int64_t)1 << (shift - 1))) >> shift);
    }
    return (int16_t)nn_clamp(scaled, common->clamp_min, common->clamp_max);
}

/* Adds 2^bit to high * 2^64 + low. */
static inline void nn_wide_add_bit(uint64_t *high, uint64_t *low, int32_t bit) {
    if (bit >= 64) {
        *high += (uint64_t)1 << (bit - 64);
        return;
    }
    *low += (uint64_t)1 << bit;
    *high += *low < ((uint64_t)1 << bit);
}

static inline int32_t nn_wide_bits(uint64_t value) {
    return value == 0 ? 0 : 64 - NN_CLZ64(value);
}

/* round(size * factor / 2^shift) of 53 bits, at most 65535. The reference multiplies in double
 * precision and rounds halves away from zero. With the factor as an integer of 53 bits over 2^s,
 * and the product as an integer of n bits, rounding it to 53 bits first carries over a half
 * wherever it lies at most half a unit of its last place below: that much is added before the
 * shift. Sizes are below 2^47. */
static __attribute__((noinline, unused)) int32_t
nn_wide_dense_scaled(uint64_t size, const nn_wide_dense_channel *channel) {
    const uint32_t t0 = (uint32_t)size, t1 = (uint32_t)(size >> 32);
    const uint32_t m0 = (uint32_t)channel->factor_low, m1 = (uint32_t)channel->factor_high;
    const uint64_t p0 = (uint64_t)m0 * t0;
    const uint64_t p1 = (uint64_t)m1 * t0 + (uint64_t)m0 * t1 + (p0 >> 32);
    uint64_t high = (uint64_t)m1 * t1 + (p1 >> 32);
    uint64_t low = (p1 << 32) | (uint32_t)p0;
    const int32_t bits = high != 0 ? 64 + nn_wide_bits(high) : nn_wide_bits(low);
    const int32_t shift = channel->right_shift;
    uint64_t scaled;
    if (bits > 53) {
        nn_wide_add_bit(&high, &low, bits - 54);
    }
    nn_wide_add_bit(&high, &low, shift - 1);
    if (shift >= 64) {
        scaled = high >> (shift - 64);
    } else {
        scaled = high >> shift != 0 ? ~(uint64_t)0 : (high << (64 - shift)) | (low >> shift);
    }
    return scaled > 65535 ? 65535 : (int32_t)scaled;
}

/* A dense layer's sum (without its bias) as an output element. The product with the 32 upper bits
 * of the factor lies at most `size` below the whole one, 21 bits further right, and what rounding
 * adds there is below 2^10: where neither changes the result, it is right. */
static inline int16_t nn_wide_dense_output(int64_t sum, const nn_wide_dense_channel *channel,
                                           const nn_wide_constants *common) {
    const int64_t total = sum + nn_wide_bias(channel->bias_low, channel->bias_high);
    const uint64_t size = total < 0 ? 0U - (uint64_t)total : (uint64_t)total;
    const int32_t shift = channel->right_shift;
    int32_t result = -1;
    if (size >> 31 == 0 && shift >= 54 && shift <= 84) {
        const uint32_t m0 = (uint32_t)channel->factor_low, m1 = (uint32_t)channel->factor_high;
        const uint32_t small = (uint32_t)size, half = (uint32_t)1 << (shift - 54);
        const uint64_t low = (uint64_t)small * ((m1 << 11) | (m0 >> 21));
        const uint64_t high = low + (small + 1024U);
        const uint32_t least = ((uint32_t)(low >> 32) + half) >> (shift - 53);
        const uint32_t most = ((uint32_t)(high >> 32) + half) >> (shift - 53);
        result = least != most ? -1 : least > 65535 ? 65535 : (int32_t)least;
    }
    if (result < 0) {
        result = nn_wide_dense_scaled(size, channel);
    }
    return (int16_t)nn_clamp(total < 0 ? -result : result, common->clamp_min, common->clamp_max);
}

/* Vectors of at most 32 bits cannot hold such sums; what the compiler makes with them is slower. */
#if defined(__riscv_vector) && defined(__clang__)
#define NN_WIDE_SCALAR _Pragma("clang loop vectorize(disable)")
#else
#define NN_WIDE_SCALAR
#endif

#if defined(__riscv) && __riscv_xlen == 32
/* A product and a sum of 64 bits take several instructions: as many products as fit are first added
 * up in 32. */
#define NN_WIDE_PART 511

/* The sum of products of `count` elements that lie one after the other. */
static inline int64_t nn_wide_dot(const int16_t *x, const int8_t *w, int32_t count) {
    int64_t sum = 0;
    do {
        int32_t left = nn_min(count, NN_WIDE_PART), part = 0;
        count -= left;
        NN_WIDE_SCALAR
        for (; left > 0; left--) {
            part += *x++ * *w++;
        }
        sum += part;
    } while (count > 0);
    return sum;
}

/* Four output channels' sums; their weights are `apart` from one another. */
static inline void nn_wide_dot4(int64_t sums[4], const int16_t *x, const int8_t *w, int32_t apart,
                                int32_t count) {
    const int8_t *w1 = w + apart, *w2 = w1 + apart, *w3 = w2 + apart;
    do {
        int32_t left = nn_min(count, NN_WIDE_PART), s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        count -= left;
        NN_WIDE_SCALAR
        for (; left > 0; left--) {
            const int32_t value = *x++;
            s0 += value * *w++;
            s1 += value * *w1++;
            s2 += value * *w2++;
            s3 += value * *w3++;
        }
        sums[0] += s0;
        sums[1] += s1;
        sums[2] += s2;
        sums[3] += s3;
    } while (count > 0);
}
#else
/* The sum of products of `count` elements that lie one after the other. */
static inline int64_t nn_wide_dot(const int16_t *x, const int8_t *w, int32_t count) {
    int64_t sum = 0;
    NN_WIDE_SCALAR
    for (; count > 0; count--) {
        sum += *x++ * *w++;
    }
    return sum;
}

/* Four output channels' sums; their weights are `apart` from one another. */
static inline void nn_wide_dot4(int64_t sums[4], const int16_t *x, const int8_t *w, int32_t apart,
                                int32_t count) {
    const int8_t *w1 = w + apart, *w2 = w1 + apart, *w3 = w2 + apart;
    int64_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    NN_WIDE_SCALAR
    for (; count > 0; count--) {
        const int32_t value = *x++;
        s0 += (int64_t)value * *w++;
        s1 += (int64_t)value * *w1++;
        s2 += (int64_t)value * *w2++;
        s3 += (int64_t)value * *w3++;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}
#endif

/* ---- tables --------------------------------------------------------------------------------- */

/* A function of all int16 values in 512 steps, the 513th entry for the slope of the last. A slope
 * is modulo 2^16, as the reference's is. */
static inline int32_t nn_wide_interpolate(const int16_t *table, int32_t value) {
    const int16_t *entry = table + 256 + (value >> 7);
    const int32_t slope = (int16_t)(entry[1] - entry[0]);
    return (int16_t)(entry[0] + ((slope * (value & 127) + 64) >> 7));
}

#endif
