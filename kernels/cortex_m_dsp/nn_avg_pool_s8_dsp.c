/* AVERAGE_POOL_2D, four channels at a time; the plain kernel serves fewer. */
#include "nn_area.h"
#include "nn_dsp_pool.h"

#define MAX_SHORT 185 /* elements that can be divided by in 16 bits; tried with every sum */

/* ---- windows of more than MAX_SHORT elements --------------------------------------------------
 */

static void compute(const nn_dsp_area *area, int32_t c, int8_t *out) {
    const int32_t count = area->rows * area->columns;
    nn_dsp_sums s;
    nn_dsp_start_sums(&s);
    nn_dsp_walk(area, c, nn_dsp_add_words, &s);
    nn_dsp_move_halves(&s);
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        out[i] = (int8_t)nn_divide(s.sums[i], count);
    }
}

/* ---- windows of fewer -------------------------------------------------------------------------
 */

/* Where a window lies, and how its sums are divided: pairs of them, in halves of a word.
 *
 * sum / count with halves away from zero is floor((sum + count / 2) / count), but for an even count
 * and a negative sum, which is made smaller by one first. With 128 count more it is not negative,
 * and the quotient larger by 128. `inverse` is 2^(16 + shift) / count rounded up, of 16 bits. */
typedef struct {
    const int8_t *row, *end; /* the first row of the window; behind the ring of rows */
    int32_t row_step, rows, ring;
    int32_t column, run, rest; /* bytes to the first column; columns from there on, and from 0 on */
    int32_t step;
    uint32_t even, added; /* 1 in each half if the count is even; minus what is added */
    uint32_t inverse;
    int32_t shift;
} short_window;

static inline void place(short_window *w, const nn_area *area) {
    const nn_view *in = area->in;
    const int32_t column = nn_column(in, area->x);
    w->row = nn_row(in, area->y);
    w->row_step = in->row_stride;
    w->rows = area->rows;
    w->ring = in->ring_rows * in->row_stride;
    w->end = in->data + w->ring;
    w->step = in->pixel_stride;
    w->column = column * w->step;
    w->run = nn_min(area->columns, in->ring_cols - column);
    w->rest = area->columns - w->run;
}

/* count: 2 at least. */
static inline void divide_by(short_window *w, int32_t count) {
    w->shift = 16 + 31 - __builtin_clz((uint32_t)count - 1);
    w->inverse = (((uint32_t)1 << w->shift) - 1) / (uint32_t)count + 1;
    w->even = (count & 1) ? 0 : 0x00010001;
    w->added = nn_times2(-(count / 2 + 128 * count));
}

/* The means of two channels, larger by 128. */
static inline uint32_t divide(uint32_t sums, const short_window *w) {
    const uint32_t from = nn_ssub16(nn_ssub16(sums, (sums >> 15) & w->even), w->added);
    const uint32_t low = ((from & 0xFFFF) * w->inverse) >> w->shift;
    const uint32_t high = ((from >> 16) * w->inverse) >> w->shift;
    return low | high << 16;
}

/* The means of four channels from c on. */
static inline uint32_t average_four(const short_window *w, int32_t c) {
    const int8_t *row = w->row + c;
    const int8_t *const end = w->end;
    uint32_t even = 0, odd = 0; /* channels 0 and 2, 1 and 3 */
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const int8_t *from = row + w->column;
        for (int32_t i = w->run; i > 0; i--, from += w->step) {
            const uint32_t word = nn_load4(from);
            even = nn_sxtab16(even, word);
            odd = nn_sxtab16_ror8(odd, word);
        }
        from = row;
        for (int32_t i = w->rest; i > 0; i--, from += w->step) {
            const uint32_t word = nn_load4(from);
            even = nn_sxtab16(even, word);
            odd = nn_sxtab16_ror8(odd, word);
        }
        row += w->row_step;
        row -= row >= end ? w->ring : 0;
    }
    return (divide(even, w) | divide(odd, w) << 8) ^ 0x80808080;
}

/* All channels of one output pixel; where they are no multiple of four, the last block is moved
 * back to end with them. */
static void compute_short(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const int32_t count = area->rows * area->columns, channels = area->in->channels;
    short_window w;
    place(&w, area);
    if (count == 1) { /* twice itself, by 2 */
        w.rows = 2;
        w.row_step = 0;
    }
    divide_by(&w, nn_max(count, 2));
    for (int32_t c = 0; c < channels; c += NN_DSP_BLOCK) {
        const int32_t first = nn_min(c, channels - NN_DSP_BLOCK);
        nn_store4(out + first, average_four(&w, first));
    }
    nn_dsp_clamp(out, channels, constants->clamp_min, constants->clamp_max);
}

void nn_avg_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    if (in->channels < NN_DSP_BLOCK) {
        nn_avg_pool_s8(geometry, constants, in, out, window);
    } else if (geometry->kernel_h * geometry->kernel_w > MAX_SHORT) {
        nn_dsp_pool(compute, geometry, (const nn_pool_constants *)constants, in, out, window);
    } else {
        nn_for_areas(compute_short, geometry, constants, in, out, window);
    }
}
