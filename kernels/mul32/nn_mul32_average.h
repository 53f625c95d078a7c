/* Averages: areas of up to 360 elements are divided by multiplication. */
#ifndef NN_MUL32_AVERAGE_H
#define NN_MUL32_AVERAGE_H

#include "nn_mul32_reduce.h"

/* (|sum| + n / 2) * (floor(2^24 / n) + 1) stays below 2^32, and 2^24 above n times what is divided,
 * so that its bits from 24 on are the quotient. */
#define NN_MUL32_DIVIDED_BITS 24
#define NN_MUL32_MOST_ELEMENTS 360

typedef struct {
    uint32_t elements, half, reciprocal;
    uint32_t shift; /* what the sum of natural bytes has more than the sum that is divided */
    int32_t low, high;
} nn_mul32_divisor;

static inline int8_t nn_mul32_average(uint32_t natural, const nn_mul32_divisor *d) {
    const int32_t sum = (int32_t)(natural - d->shift);
    const uint32_t size = (sum < 0 ? 0U - (uint32_t)sum : (uint32_t)sum) + d->half;
    const int32_t quotient = d->reciprocal != 0
                                 ? (int32_t)(size * d->reciprocal >> NN_MUL32_DIVIDED_BITS)
                                 : (int32_t)(size / d->elements);
    return (int8_t)nn_clamp(sum < 0 ? -quotient : quotient, d->low, d->high);
}

/* Four channels from c on of an area whose words lie as in the tensor. */
static inline void nn_mul32_average_plain(const nn_mul32_area *a, const nn_mul32_divisor *d,
                                          int8_t *out, int32_t c) {
    const int8_t *row = a->first + a->column + c;
    uint32_t even = 0, odd = 0;
    for (int32_t rows = a->rows; rows > 0; rows--, row += a->row_step) {
        const int8_t *from = row;
        for (int32_t left = a->run; left > 0; left--, from += a->step) {
            const uint32_t word = *(const uint32_t *)(const void *)from ^ NN_MUL32_BYTES;
            even += word & NN_MUL32_PAIRS;
            odd += word >> 8 & NN_MUL32_PAIRS;
        }
    }
    out[c] = nn_mul32_average(even & 0xFFFF, d);
    out[c + 1] = nn_mul32_average(odd & 0xFFFF, d);
    out[c + 2] = nn_mul32_average(even >> 16, d);
    out[c + 3] = nn_mul32_average(odd >> 16, d);
}

/* `wide` channels of any area from c on: 4 or 1. */
NN_OUTLINE void nn_mul32_average_block(const nn_mul32_area *a, const nn_mul32_divisor *d,
                                       int8_t *out, int32_t c, int32_t wide) {
    const int8_t *row = a->first + c;
    uint32_t sums[NN_MUL32_FOUR] = {0, 0, 0, 0};
    for (int32_t rows = a->rows; rows > 0; rows--) {
        nn_mul32_take(sums, row + a->column, a->step, a->run, wide);
        nn_mul32_take(sums, row, a->step, a->rest, wide);
        row = nn_mul32_next_row(a, row);
    }
    for (int32_t i = 0; i < wide; i++) {
        out[c + i] = nn_mul32_average(sums[i], d);
    }
}

/* All channels of a pixel: the mean of `elements`, which are the area's and others of sum `more`.
 */
static inline void nn_mul32_average_area(const nn_area *area, const nn_pool_constants *constants,
                                         int8_t *out, int32_t more, uint32_t elements) {
    static const uint32_t range = 1U << NN_MUL32_DIVIDED_BITS;
    const int32_t channels = area->in->channels;
    const nn_mul32_divisor d = {elements,
                                elements / 2,
                                elements > NN_MUL32_MOST_ELEMENTS ? 0 : range / elements + 1,
                                128 * (uint32_t)(area->rows * area->columns) - (uint32_t)more,
                                constants->clamp_min,
                                constants->clamp_max};
    const nn_mul32_area a = nn_mul32_locate(area);
    int32_t c = 0;
    for (; c + NN_MUL32_FOUR <= channels; c += NN_MUL32_FOUR) {
        if (a.is_plain) {
            nn_mul32_average_plain(&a, &d, out, c);
        } else {
            nn_mul32_average_block(&a, &d, out, c, NN_MUL32_FOUR);
        }
    }
    for (; c < channels; c++) {
        nn_mul32_average_block(&a, &d, out, c, 1);
    }
}

#endif
