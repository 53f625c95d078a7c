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

/* round(a * b / 2^31), halves up. b is never -2^31, so nothing saturates. */
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
 * to 30. A channel whose scale is negative has a negative multiplier.
 *
 * From two fractional bits on, both roundings are one addition. With e = -shift the result is
 *   floor((floor((value * multiplier + 2^30) / 2^31) + 2^(e-1) - negative) / 2^e)
 *   = (value * multiplier + 2^30 + 2^(30+e) - negative * 2^31) >> (31 + e)
 * where `negative` is 1 if the inner quotient is below zero. The product's sign may stand for it:
 * they differ only where the quotient is 0, and then the result is 0 either way. */
static inline int32_t nn_requantise(int32_t value, int32_t multiplier, int32_t shift) {
    if (shift <= -2) {
        const int32_t sign = value ^ multiplier;
        const uint32_t low = ((uint32_t)sign & 0x80000000U) | 0x40000000U;
        const int32_t high = (int32_t)((uint32_t)1 << (-2 - shift)) + (sign >> 31);
        const int64_t rounding = (int64_t)(((uint64_t)(uint32_t)high << 32) | low);
        return (int32_t)((rounding + (int64_t)value * multiplier) >> 32) >> (-1 - shift);
    }
    if (shift >= 0) {
        return nn_high_multiply((int32_t)((uint32_t)value << shift), multiplier);
    }
    return nn_rounding_shift(nn_high_multiply(value, multiplier), 1);
}

/* ---- addressing ---------------------------------------------------------------------------- */

/* The start of row y's column window, in bytes from the view's data on. */
static inline int32_t nn_row_offset(const nn_view *view, int32_t y) {
    return (y % view->ring_rows) * view->row_stride;
}

static inline const int8_t *nn_row(const nn_view *in, int32_t y) {
    return in->data + nn_row_offset(in, y);
}

static inline int8_t *nn_out_row(const nn_view *out, int32_t y) {
    return nn_out_data(out) + nn_row_offset(out, y);
}

/* Where column x stands in the column window. */
static inline int32_t nn_column(const nn_view *view, int32_t x) {
    return (x - view->x0) % view->ring_cols;
}

static inline const int8_t *nn_pixel(const nn_view *in, int32_t y, int32_t x) {
    return nn_row(in, y) + nn_column(in, x) * in->pixel_stride;
}

static inline int8_t *nn_out_pixel(const nn_view *out, int32_t y, int32_t x) {
    return nn_out_row(out, y) + nn_column(out, x) * out->pixel_stride;
}

/* Columns from x on, at most `wanted`, that follow one another, each a pixel stride further. */
static inline int32_t nn_run(const nn_view *view, int32_t x, int32_t wanted) {
    return nn_min(wanted, view->ring_cols - nn_column(view, x));
}

/* Whether nothing lies between the pixels of a run. */
static inline int nn_dense(const nn_view *view) {
    return view->pixel_stride == view->channels;
}

/* Whether all runs of a window are of one pixel. */
static inline int nn_one_column(const nn_window *window) {
    return window->x1 - window->x0 <= 1;
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

#endif
