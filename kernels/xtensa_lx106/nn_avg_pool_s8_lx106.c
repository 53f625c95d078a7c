/* AVERAGE_POOL_2D: what lies outside the tensor does not count. Areas of up to 360 elements are
 * divided by multiplication. */
#include "nn_area.h"
#include "nn_lx106_reduce.h"
#include "nn_xtensa.h"

/* (|sum| + n / 2) * (floor(2^24 / n) + 1) stays below 2^32, and 2^24 above n times what is divided,
 * so that its bits from 24 on are the quotient. */
#define DIVIDED_BITS 24
#define MOST_ELEMENTS 360

typedef struct {
    uint32_t elements, half, reciprocal;
    int32_t low, high;
} divisor;

static inline int8_t average(uint32_t natural, const divisor *d) {
    const int32_t sum = (int32_t)(natural - 128 * d->elements);
    const uint32_t size = (sum < 0 ? 0U - (uint32_t)sum : (uint32_t)sum) + d->half;
    const int32_t quotient = d->reciprocal != 0 ? (int32_t)(size * d->reciprocal >> DIVIDED_BITS)
                                                : (int32_t)(size / d->elements);
    return (int8_t)nn_clamp(sum < 0 ? -quotient : quotient, d->low, d->high);
}

/* `wide` channels of an area from c on. */
static void block(const nn_area *area, const divisor *d, int8_t *out, int32_t c, int32_t wide) {
    const nn_view *in = area->in;
    const int32_t step = in->pixel_stride, column = nn_column(in, area->x);
    const int32_t run = nn_min(area->columns, in->ring_cols - column);
    const int8_t *row = nn_row(in, area->y) + c;
    const int8_t *end = in->data + in->ring_rows * in->row_stride;
    uint32_t sums[NN_LX106_FOUR] = {0, 0, 0, 0};
    int32_t rows = area->rows;
    if (run * step == in->row_stride && row + rows * in->row_stride <= end + c) { /* one run */
        nn_lx106_take(sums, row + column * step, step, run * rows, wide);
        rows = 0;
    }
    for (; rows > 0; rows--) {
        nn_lx106_take(sums, row + column * step, step, run, wide);
        if (run < area->columns) { /* the column window wraps around */
            nn_lx106_take(sums, row, step, area->columns - run, wide);
        }
        row += in->row_stride;
        row = row >= end ? row - in->ring_rows * in->row_stride : row;
    }
    for (int32_t i = 0; i < wide; i++) {
        out[c + i] = average(sums[i], d);
    }
}

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    static const uint32_t range = 1U << DIVIDED_BITS;
    const int32_t channels = area->in->channels;
    const uint32_t elements = (uint32_t)(area->rows * area->columns);
    const divisor d = {elements, elements / 2, elements > MOST_ELEMENTS ? 0 : range / elements + 1,
                       constants->clamp_min, constants->clamp_max};
    int32_t c = 0;
    for (; c + NN_LX106_FOUR <= channels; c += NN_LX106_FOUR) {
        block(area, &d, out, c, NN_LX106_FOUR);
    }
    for (; c < channels; c++) {
        block(area, &d, out, c, 1);
    }
}

void nn_avg_pool_s8_lx106(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
