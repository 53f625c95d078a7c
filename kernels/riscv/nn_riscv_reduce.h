/* Poolings and means: eight channels at a time, each in a register; the last ones four,
 * three, two or one at a time. */
#ifndef NN_RISCV_REDUCE_H
#define NN_RISCV_REDUCE_H

#include "nn_area.h"

#define NN_RISCV_WIDE 8
#define NN_RISCV_FOUR 4
#define NN_RISCV_THREE 3 /* images have three channels */
#define NN_RISCV_TWO 2

/* Adds `count` elements, `step` bytes apart, to the totals of `wide` channels side by side; or
 * keeps the greatest; `bytes`: of an element. */
static inline __attribute__((always_inline)) void
nn_riscv_take(int32_t totals[NN_RISCV_WIDE], const int8_t *from, int32_t step, int32_t count,
              const int32_t wide, const int greatest, const int bytes) {
    for (; count > 0; count--, from += step) {
#pragma GCC unroll 8
        for (int32_t i = 0; i < wide; i++) {
            const int32_t value = bytes == 1 ? from[i] : ((const int16_t *)(const void *)from)[i];
            totals[i] = greatest ? nn_max(totals[i], value) : totals[i] + value;
        }
    }
}

/* The totals over an area, of `wide` channels from c on. */
static inline __attribute__((always_inline)) void
nn_riscv_take_area(int32_t totals[NN_RISCV_WIDE], const nn_area *area, int32_t c,
                   const int32_t wide, const int greatest, const int bytes) {
    const nn_view *in = area->in;
    const int32_t step = in->pixel_stride, column = nn_column(in, area->x);
    const int32_t run = nn_min(area->columns, in->ring_cols - column);
    const int8_t *row = nn_row(in, area->y) + c * bytes;
    const int8_t *end = in->data + in->ring_rows * in->row_stride;
#pragma GCC unroll 8
    for (int32_t i = 0; i < wide; i++) {
        totals[i] = !greatest ? 0 : bytes == 1 ? -128 : -32768;
    }
    for (int32_t rows = area->rows; rows > 0; rows--) {
        nn_riscv_take(totals, row + column * step, step, run, wide, greatest, bytes);
        if (run < area->columns) { /* the column window wraps around */
            nn_riscv_take(totals, row, step, area->columns - run, wide, greatest, bytes);
        }
        row += in->row_stride;
        row = row >= end ? row - in->ring_rows * in->row_stride : row;
    }
}

/* Element i at `out`. */
static inline void nn_riscv_put(int8_t *out, int32_t i, int32_t value, const int bytes) {
    if (bytes == 1) {
        out[i] = (int8_t)value;
    } else {
        ((int16_t *)(void *)out)[i] = (int16_t)value;
    }
}

/* Computes `wide` channels of a pixel from c on. */
typedef void nn_riscv_pool_block(const nn_area *area, const nn_pool_constants *constants,
                                 int8_t *out, int32_t c, int32_t wide);

/* Has all channels of a pixel computed. */
static inline __attribute__((always_inline)) void
nn_riscv_for_blocks(nn_riscv_pool_block *compute, const nn_area *area, int32_t channels,
                    const nn_pool_constants *constants, int8_t *out) {
    int32_t c = 0;
    for (; c + NN_RISCV_WIDE <= channels; c += NN_RISCV_WIDE) {
        compute(area, constants, out, c, NN_RISCV_WIDE);
    }
    for (; c + NN_RISCV_FOUR <= channels; c += NN_RISCV_FOUR) {
        compute(area, constants, out, c, NN_RISCV_FOUR);
    }
    if (c + NN_RISCV_THREE == channels) {
        compute(area, constants, out, c, NN_RISCV_THREE);
        return;
    }
    if (c + NN_RISCV_TWO == channels) {
        compute(area, constants, out, c, NN_RISCV_TWO);
        return;
    }
    if (c < channels) {
        compute(area, constants, out, c, 1);
    }
}

#endif
