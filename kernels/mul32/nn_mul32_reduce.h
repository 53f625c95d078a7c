/* Sums over areas: four channels of a pixel in a word, as two words of two sums of 16 bits. */
#ifndef NN_MUL32_REDUCE_H
#define NN_MUL32_REDUCE_H

#include "nn_area.h"
#include "nn_mul32_scale.h"

#define NN_MUL32_FOUR 4
#define NN_MUL32_FLUSH 256 /* natural bytes whose sum 16 bits hold */

/* Adds `count` elements (256 at most), `step` bytes apart, of four channels side by side as natural
 * bytes to their sums. The channels begin at a multiple of four. */
static inline void nn_mul32_add_words(uint32_t sums[NN_MUL32_FOUR], const int8_t *from,
                                      int32_t step, int32_t count) {
    uint32_t even = 0, odd = 0;
    for (; count > 0; count--, from += step) {
        const uint32_t word = *(const uint32_t *)(const void *)from ^ NN_MUL32_BYTES;
        even += word & NN_MUL32_PAIRS;
        odd += word >> 8 & NN_MUL32_PAIRS;
    }
    sums[0] += even & 0xFFFF;
    sums[1] += odd & 0xFFFF;
    sums[2] += even >> 16;
    sums[3] += odd >> 16;
}

/* The same of any four channels, or of one. */
static inline __attribute__((always_inline)) void nn_mul32_add_bytes(uint32_t sums[NN_MUL32_FOUR],
                                                                     const int8_t *from,
                                                                     int32_t step, int32_t count,
                                                                     const int32_t wide) {
    for (; count > 0; count--, from += step) {
#pragma GCC unroll 4
        for (int32_t i = 0; i < wide; i++) {
            sums[i] += (uint32_t)nn_mul32_natural(from + i);
        }
    }
}

/* Adds any number of elements of `wide` channels: 4 or 1. */
NN_OUTLINE void nn_mul32_take(uint32_t sums[NN_MUL32_FOUR], const int8_t *from, int32_t step,
                              int32_t count, int32_t wide) {
    if (wide < NN_MUL32_FOUR) {
        nn_mul32_add_bytes(sums, from, step, count, 1);
    } else if ((((uintptr_t)from | (uintptr_t)step) & 3) != 0) {
        nn_mul32_add_bytes(sums, from, step, count, NN_MUL32_FOUR);
    } else {
        for (; count > 0; count -= NN_MUL32_FLUSH, from += NN_MUL32_FLUSH * step) {
            nn_mul32_add_words(sums, from, step, nn_min(count, NN_MUL32_FLUSH));
        }
    }
}

/* Where an area's elements lie: worked out once for all channels, because it takes divisions. */
typedef struct {
    const int8_t *first, *end; /* the first row's column window; behind the ring of rows */
    int32_t column, step;      /* bytes to the first column, and from one to the next */
    int32_t rows, run, rest;   /* columns up to the window's end, and from its start on again */
    int32_t row_step, ring;
    int is_plain; /* words that lie as in the tensor, no more than sums of 16 bits hold */
} nn_mul32_area;

static inline nn_mul32_area nn_mul32_locate(const nn_area *area) {
    const nn_view *in = area->in;
    const int32_t column = nn_column(in, area->x);
    nn_mul32_area a;
    a.first = nn_row(in, area->y);
    a.ring = in->ring_rows * in->row_stride;
    a.end = in->data + a.ring;
    a.step = in->pixel_stride;
    a.column = column * a.step;
    a.rows = area->rows;
    a.run = nn_min(area->columns, in->ring_cols - column);
    a.rest = area->columns - a.run;
    a.row_step = in->row_stride;
    a.is_plain =
        (((uintptr_t)(a.first + a.column) | (uintptr_t)a.step | (uintptr_t)a.row_step) & 3) == 0 &&
        a.rest == 0 && a.first + (a.rows - 1) * a.row_step < a.end &&
        a.rows * a.run <= NN_MUL32_FLUSH;
    return a;
}

static inline const int8_t *nn_mul32_next_row(const nn_mul32_area *a, const int8_t *row) {
    row += a->row_step;
    return row >= a->end ? row - a->ring : row;
}

#endif
