/* AVERAGE_POOL_2D after a PAD, four channels at a time: what lies outside the tensor counts as
 * elements of one value. */
#include "nn_area.h"
#include "nn_dsp_average.h"

typedef struct {
    nn_filled_pool_constants filled;
    nn_dsp_division division;
} pooling;

/* Where the elements of a window lie: `run` columns, and `rest` from the start of the row on. */
typedef struct {
    const int8_t *row, *end; /* the first row; behind the ring of rows */
    int32_t rows, run, rest, column, step, row_step, ring;
    uint32_t start; /* what the sums begin with */
} place;

typedef struct {
    uint32_t even, odd; /* sums of channels 0 and 2, of 1 and 3 */
} sums;

static inline __attribute__((always_inline)) void add(sums *s, const int8_t *pixel) {
    const uint32_t word = nn_load4(pixel);
    s->even = nn_sxtab16(s->even, word);
    s->odd = nn_sxtab16_ror8(s->odd, word);
}

/* Four channels from c on, where no ring cuts the window. `columns` is a constant where it is a
 * small one. */
static inline __attribute__((always_inline)) sums sum_whole(const place *p, int32_t c,
                                                            int32_t columns) {
    const int8_t *row = p->row + p->column + c;
    sums s = {p->start, p->start};
    for (int32_t rows = p->rows; rows > 0; rows--, row += p->row_step) {
        const int8_t *pixel = row;
#pragma GCC unroll 3
        for (int32_t i = columns; i > 0; i--, pixel += p->step) {
            add(&s, pixel);
        }
    }
    return s;
}

/* The same of any window. */
static inline sums sum_cut(const place *p, int32_t c) {
    const int8_t *row = p->row;
    sums s = {p->start, p->start};
    for (int32_t rows = p->rows; rows > 0; rows--) {
        const int8_t *pixel = row + p->column + c;
        for (int32_t i = 0; i < p->run + p->rest; i++, pixel += p->step) {
            pixel = i == p->run ? row + c : pixel;
            add(&s, pixel);
        }
        row += p->row_step;
        row = row >= p->end ? row - p->ring : row;
    }
    return s;
}

/* All channels of a pixel; where they are no multiple of four, the last block is moved back to end
 * with them. `columns`: of the window; 0: a ring cuts it. */
static inline __attribute__((always_inline)) void average(const place *where, int32_t columns,
                                                          const nn_dsp_division *division,
                                                          int8_t *out, int32_t channels) {
    const place p = *where;
    const nn_dsp_division d = *division;
    for (int32_t c = 0; c < channels; c += NN_DSP_BLOCK) {
        const int32_t first = nn_min(c, channels - NN_DSP_BLOCK);
        const sums s = columns > 0 ? sum_whole(&p, first, columns) : sum_cut(&p, first);
        nn_store4(out + first, nn_dsp_means(s.even, s.odd, &d));
    }
}

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const pooling *pool = (const pooling *)(const void *)constants;
    const nn_view *in = area->in;
    const int32_t outside = pool->filled.elements - area->rows * area->columns;
    const int32_t column = nn_column(in, area->x), ring = in->ring_rows * in->row_stride;
    const int32_t run = nn_min(area->columns, in->ring_cols - column);
    const place p = {.row = nn_row(in, area->y),
                     .end = in->data + ring,
                     .rows = area->rows,
                     .run = run,
                     .rest = area->columns - run,
                     .column = column * in->pixel_stride,
                     .step = in->pixel_stride,
                     .row_step = in->row_stride,
                     .ring = ring,
                     .start = nn_times2(outside * pool->filled.value)};
    if (p.rest > 0 || p.row + (p.rows - 1) * p.row_step >= p.end) {
        average(&p, 0, &pool->division, out, in->channels);
    } else if (run == 3) {
        average(&p, 3, &pool->division, out, in->channels);
    } else {
        average(&p, run, &pool->division, out, in->channels);
    }
    nn_dsp_clamp(out, in->channels, constants->clamp_min, constants->clamp_max);
}

void nn_avg_pool_filled_s8_dsp(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)constants;
    const pooling p = {*filled, nn_dsp_divide_by(filled->elements)};
    nn_for_areas(compute, geometry, &p, in, out, window);
}
