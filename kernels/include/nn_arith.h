/* Arithmetic and addressing that the plain C kernels share.
 *
 * Right shifts of negative integers are taken to be arithmetic and int32_t to wrap when an
 * uint32_t is converted to it, as every compiler for the supported cores defines both.
 */
#ifndef NN_ARITH_H
#define NN_ARITH_H

#include "nn.h"

typedef char nn_shifts_are_arithmetic[(-3 >> 1) == -2 ? 1 : -1];

static inline int32_t nn_min(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static inline int32_t nn_max(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static inline int32_t nn_clamp(int32_t value, int32_t low, int32_t high) {
    return nn_min(nn_max(value, low), high);
}

/* a + b modulo 2^32: a bias may take a sum over the edge and back. */
static inline int32_t nn_wrapping_add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* round(a * b / 2^31), halves up. A multiplier is never -2^31, so nothing saturates. */
static inline int32_t nn_high_multiply(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* round(value / 2^exponent), halves away from zero; exponent 0 to 31. */
static inline int32_t nn_rounding_shift(int32_t value, int32_t exponent) {
    const int32_t mask = (int32_t)(((uint32_t)1 << exponent) - 1);
    const int32_t threshold = (mask >> 1) + (value < 0);
    return (value >> exponent) + ((value & mask) > threshold);
}

/* value * multiplier * 2^(shift - 31), rounded twice as TFLite's reference kernels do; shift -31
 * to 30. */
static inline int32_t nn_requantise(int32_t value, int32_t multiplier, int32_t shift) {
    if (shift > 0) {
        return nn_high_multiply((int32_t)((uint32_t)value << shift), multiplier);
    }
    return nn_rounding_shift(nn_high_multiply(value, multiplier), -shift);
}

/* ---- addressing ---------------------------------------------------------------------------- */

/* The start of row y's column window. */
static inline int8_t *nn_row(const nn_view *view, int32_t y) {
    return view->data + (y % view->ring_rows) * view->row_stride;
}

/* Where column x stands in the column window. */
static inline int32_t nn_column(const nn_view *view, int32_t x) {
    return (x - view->x0) % view->ring_cols;
}

static inline int8_t *nn_pixel(const nn_view *view, int32_t y, int32_t x) {
    return nn_row(view, y) + nn_column(view, x) * view->channels;
}

/* Columns from x on, at most `wanted`, that lie one after the other. */
static inline int32_t nn_run(const nn_view *view, int32_t x, int32_t wanted) {
    return nn_min(wanted, view->ring_cols - nn_column(view, x));
}

/* Steps to the next element of a box of `size`, the last of `rank` dimensions fastest; moves each
 * offset by its strides. Returns 0 after the last element. */
static inline int nn_next(int32_t rank, const int32_t *size, int32_t *index, const int32_t *stride,
                          int32_t *offset) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        *offset += stride[d];
        if (++index[d] < size[d]) {
            return 1;
        }
        *offset -= size[d] * stride[d];
        index[d] = 0;
    }
    return 0;
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Taps [first, end) of a window meet the tensor, the others its padding. */
typedef struct {
    int32_t first, end;
} nn_taps;

/* The taps k of `count` with 0 <= origin + k * dilation < size. */
static inline nn_taps nn_valid_taps(int32_t origin, int32_t size, int32_t count, int32_t dilation) {
    nn_taps taps = {0, 0};
    if (origin < size) {
        taps.first = origin < 0 ? (dilation - 1 - origin) / dilation : 0;
        taps.end = nn_min(count, (size - origin + dilation - 1) / dilation);
        taps.first = nn_min(taps.first, taps.end);
    }
    return taps;
}

/* ---- convolutions -------------------------------------------------------------------------- */

/* The weights behind the constants: they begin at the next multiple of 16 bytes. */
static inline const int8_t *nn_weights(const void *constants, int32_t channels,
                                       size_t channel_bytes) {
    const size_t head = sizeof(nn_conv_constants) + (size_t)channels * channel_bytes + (size_t)15;
    return (const int8_t *)constants + head / 16 * 16;
}

/* A convolution's constants. */
typedef struct {
    const nn_conv_constants *common;
    const nn_channel *channels;
    const int8_t *weights;
} nn_conv_block;

static inline nn_conv_block nn_conv_open(const void *constants, int32_t channels) {
    nn_conv_block block;
    block.common = (const nn_conv_constants *)constants;
    block.channels = (const nn_channel *)(const void *)(block.common + 1);
    block.weights = nn_weights(constants, channels, sizeof(nn_channel));
    return block;
}

/* A convolution's sum (without its bias) as an output element. */
static inline int8_t nn_conv_output(int32_t sum, const nn_channel *channel,
                                    const nn_conv_constants *common) {
    const int32_t scaled =
        nn_requantise(nn_wrapping_add(sum, channel->bias), channel->multiplier, channel->shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, common->output_zero_point), common->clamp_min,
                            common->clamp_max);
}

/* A dense layer's sum (without its bias) as an output element: rounded once, halves away from
 * zero. The product's 16 lowest bits are below what the rounding constant can carry into. */
static inline int8_t nn_dense_output(int32_t sum, const nn_dense_channel *channel,
                                     const nn_conv_constants *common) {
    const int32_t total = nn_wrapping_add(sum, channel->bias);
    const uint32_t size = total < 0 ? 0U - (uint32_t)total : (uint32_t)total;
    const uint64_t product = (uint64_t)size * (uint32_t)channel->multiplier +
                             (((uint64_t)size * (uint32_t)channel->low) >> 16);
    const uint64_t rounded =
        (product + ((uint64_t)1 << (30 - channel->shift))) >> (31 - channel->shift);
    const int32_t scaled = rounded > 255 ? 255 : (int32_t)rounded;
    return (int8_t)nn_clamp((total < 0 ? -scaled : scaled) + common->output_zero_point,
                            common->clamp_min, common->clamp_max);
}

/* Adds the dot products of x and four rows of weights, `stride` bytes apart, to sums. */
static inline void nn_dot4(int32_t sums[4], const int8_t *x, const int8_t *weights, int32_t stride,
                           int32_t count) {
    const int8_t *w0 = weights, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = x[i];
        s0 += value * w0[i];
        s1 += value * w1[i];
        s2 += value * w2[i];
        s3 += value * w3[i];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static inline int32_t nn_dot(const int8_t *x, const int8_t *weights, int32_t count) {
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += x[i] * weights[i];
    }
    return sum;
}

static inline int32_t nn_sum(const int8_t *values, int32_t count) {
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum;
}

#endif
