/* AVERAGE_POOL_2D after a PAD, four channels at a time: what lies outside the tensor counts as
 * elements of one value. */
#include "nn_area.h"
#include "nn_dsp_average.h"

typedef struct {
    nn_filled_pool_constants filled;
    nn_dsp_division division;
} pooling;

typedef struct {
    uint32_t even, odd; /* channels 0 and 2, 1 and 3 */
} sums;

static inline __attribute__((always_inline)) void add(sums *s, const int8_t *from, int32_t step,
                                                      int32_t count) {
#pragma GCC unroll 4
    for (; count > 0; count--, from += step) {
        const uint32_t word = nn_load4(from);
        s->even = nn_sxtab16(s->even, word);
        s->odd = nn_sxtab16_ror8(s->odd, word);
    }
}

/* All channels of a pixel; where they are no multiple of four, the last block is moved back to end
 * with them. */
static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const pooling *p = (const pooling *)(const void *)constants;
    const nn_view *in = area->in;
    const int32_t channels = in->channels, step = in->pixel_stride;
    const int32_t outside = p->filled.elements - area->rows * area->columns;
    const uint32_t start = nn_times2(outside * p->filled.value);
    const int32_t column = nn_column(in, area->x);
    const int32_t run = nn_min(area->columns, in->ring_cols - column), rest = area->columns - run;
    const int8_t *const top = nn_row(in, area->y);
    const int8_t *const end = in->data + in->ring_rows * in->row_stride;
    for (int32_t c = 0; c < channels; c += NN_DSP_BLOCK) {
        const int32_t first = nn_min(c, channels - NN_DSP_BLOCK);
        const int8_t *row = top;
        sums s = {start, start};
        for (int32_t rows = area->rows; rows > 0; rows--) {
            add(&s, row + first + column * step, step, run);
            if (rest > 0) { /* the column window wraps around */
                add(&s, row + first, step, rest);
            }
            row += in->row_stride;
            row = row >= end ? row - in->ring_rows * in->row_stride : row;
        }
        nn_store4(out + first, nn_dsp_means(s.even, s.odd, &p->division));
    }
    nn_dsp_clamp(out, channels, constants->clamp_min, constants->clamp_max);
}

void nn_avg_pool_filled_s8_dsp(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)constants;
    const pooling p = {*filled, nn_dsp_divide_by(filled->elements)};
    nn_for_areas(compute, geometry, &p, in, out, window);
}
