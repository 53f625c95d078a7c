/* Pooling: how windows are walked, four channels ("block") at a time. */
#ifndef NN_DSP_POOL_H
#define NN_DSP_POOL_H

#include "nn_dsp.h"
#include "nn_fold.h"

/* Takes `count` words of four channels, `step` bytes apart. */
typedef void nn_dsp_take(void *state, const int8_t *from, int32_t step, int32_t count);

/* The part of a pixel's window that lies in the tensor. */
typedef struct {
    const nn_view *in;
    int32_t y, x, rows, columns;
} nn_dsp_area;

/* Has all elements of an area taken, four channels from c on. */
static inline void nn_dsp_walk(const nn_dsp_area *area, int32_t c, nn_dsp_take *take, void *state) {
    const nn_view *in = area->in;
    const int32_t step = in->pixel_stride, column = nn_column(in, area->x);
    const int32_t run = nn_min(area->columns, in->ring_cols - column);
    const int8_t *row = nn_row(in, area->y) + c;
    const int8_t *end = in->data + in->ring_rows * in->row_stride;
    for (int32_t rows = area->rows; rows > 0; rows--) {
        take(state, row + column * step, step, run);
        if (run < area->columns) { /* the column window wraps around */
            take(state, row, step, area->columns - run);
        }
        row += in->row_stride;
        if (row >= end) {
            row -= in->ring_rows * in->row_stride;
        }
    }
}

/* Windows of `pixels` outputs in a row that no ring cuts: the first one's, the others each
 * `in_step` bytes further. */
typedef struct {
    const int8_t *data;
    int8_t *out;
    int32_t rows, columns, row_step, step; /* of a window; bytes from row to row, pixel to pixel */
    int32_t pixels, in_step, out_step, channels;
} nn_dsp_windows;

/* Computes all channels of all pixels. */
typedef void nn_dsp_pool_run(const nn_dsp_windows *windows);

/* Computes four channels from c on of the output pixel at `out`. */
typedef void nn_dsp_pool_block(const nn_dsp_area *area, int32_t c, int8_t *out);

/* A pixel whose window a ring cuts; where channels are no multiple of four, the last block is moved
 * back to end with them. */
static inline void nn_dsp_pool_pixel(nn_dsp_pool_block *compute, const nn_dsp_area *area,
                                     int8_t *pixel, int32_t channels) {
    for (int32_t c = 0; c < channels; c += NN_DSP_BLOCK) {
        const int32_t first = nn_min(c, channels - NN_DSP_BLOCK);
        compute(area, first, pixel + first);
    }
}

/* The windows from column `left` of the input on, as many as lie like the first and are wanted;
 * `run->columns` says how many columns of the first lie in the tensor. */
static inline int32_t nn_dsp_alike(const nn_dsp_windows *run, const nn_pool_geometry *g,
                                   const nn_view *in, int32_t left, int32_t wanted) {
    if (run->columns < g->kernel_w) {
        return 1;
    }
    const int32_t here = nn_run(in, left, in->width - left);
    return nn_min(wanted, (here - g->kernel_w) / g->stride_w + 1);
}

/* A kernel of poolings. */
typedef void nn_dsp_pool_kernel(const nn_pool_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window);

/* Has all pixels of a window computed: `runs` those that it can, `blocks` the rest, or `plain`
 * where that is NULL. Elements have `bytes` bytes. */
static inline __attribute__((always_inline)) void
nn_dsp_pool(nn_dsp_pool_run *runs, nn_dsp_pool_block *blocks, nn_dsp_pool_kernel *plain,
            const nn_pool_geometry *g, const nn_pool_constants *constants, const nn_view *in,
            const nn_view *out, const nn_window *window, int32_t bytes) {
    nn_dsp_windows run;
    run.row_step = in->row_stride;
    run.step = in->pixel_stride;
    run.in_step = g->stride_w * in->pixel_stride;
    run.out_step = out->pixel_stride;
    run.channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        const int32_t row = (top + rows.first) % in->ring_rows;
        run.rows = rows.end - rows.first;
        for (int32_t x = window->x0; x < window->x1; x += run.pixels) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const int32_t first = left + columns.first, column = nn_column(in, first);
            run.columns = columns.end - columns.first;
            run.out = nn_out_pixel(out, y, x);
            run.pixels = 1;
            if (row + run.rows <= in->ring_rows && column + run.columns <= in->ring_cols) {
                run.data = in->data + row * run.row_step + column * run.step;
                run.pixels = nn_dsp_alike(&run, g, in, left, nn_run(out, x, window->x1 - x));
                runs(&run);
            } else if (blocks == NULL) {
                const nn_window one = {y, y + 1, x, x + 1};
                plain(g, constants, in, out, &one);
                continue;
            } else {
                const nn_dsp_area area = {in, top + rows.first, first, run.rows, run.columns};
                nn_dsp_pool_pixel(blocks, &area, run.out, run.channels);
            }
            for (int32_t i = 0; i < run.pixels; i++) {
                int8_t *const to = run.out + i * run.out_step;
                if (bytes == 2) {
                    nn_dsp_clamp_wide((int16_t *)(void *)to, run.channels, constants->clamp_min,
                                      constants->clamp_max);
                } else {
                    nn_dsp_clamp(to, run.channels, constants->clamp_min, constants->clamp_max);
                }
            }
        }
    }
}

/* ---- few channels ------------------------------------------------------------------------------
 */

/* Windows of fewer channels than a word holds. Where the next pixels lie behind, in the input and
 * in the output, a pixel is computed as if it had as many (`runs`): the next ones' outputs are
 * written after it. Elements have `bytes` bytes. */
static inline __attribute__((always_inline)) void
nn_dsp_narrow_windows(const nn_dsp_windows *windows, nn_dsp_pool_run *runs, int32_t start,
                      nn_fold_step *step, nn_fold_end *end, int32_t bytes) {
    nn_dsp_windows w = *windows;
    const int32_t word = 4 / bytes;
    const int is_dense = w.out_step == bytes * w.channels;
    const int32_t alike = is_dense ? w.pixels - (word - 1) / w.channels : 0;
    const int8_t *in = w.data;
    int8_t *out = w.out;
    if (alike > 0) {
        nn_dsp_windows filled = w;
        filled.pixels = alike;
        filled.channels = word;
        runs(&filled);
        in += alike * w.in_step;
        out += alike * w.out_step;
        w.pixels -= alike;
    }
#pragma GCC unroll 1
    for (int32_t i = w.pixels; i > 0; i--, in += w.in_step, out += w.out_step) {
#pragma GCC unroll 1
        for (int32_t c = 0; c < w.channels; c++) {
            const int8_t *row = in + bytes * c;
            int32_t found = start;
            int32_t rows = w.rows;
            do { /* a window has a row and a column at least */
                const int8_t *value = row;
                int32_t left = w.columns;
                do {
                    found = step(found, nn_fold_element(value, 0, bytes));
                    value += w.step;
                } while (--left > 0);
                row += w.row_step;
            } while (--rows > 0);
            found = end(found, w.rows * w.columns);
            if (bytes == 1) {
                out[c] = (int8_t)found;
            } else {
                ((int16_t *)(void *)out)[c] = (int16_t)found;
            }
        }
    }
}

/* ---- sums -------------------------------------------------------------------------------------
 */

#define NN_DSP_LANES 255 /* int8 that an int16 can hold the sum of */

/* Sums of four channels: in halves of two words, now and then moved to where there is room. */
typedef struct {
    int32_t sums[NN_DSP_BLOCK];
    uint32_t even, odd; /* channels 0 and 2, 1 and 3 */
    int32_t room;       /* elements that the halves still take */
} nn_dsp_sums;

static inline void nn_dsp_clear_halves(nn_dsp_sums *s) {
    s->even = 0;
    s->odd = 0;
    s->room = NN_DSP_LANES;
}

static inline void nn_dsp_move_halves(nn_dsp_sums *s) {
    s->sums[0] += (int16_t)s->even;
    s->sums[1] += (int16_t)s->odd;
    s->sums[2] += (int32_t)s->even >> 16;
    s->sums[3] += (int32_t)s->odd >> 16;
    nn_dsp_clear_halves(s);
}

static inline void nn_dsp_start_sums(nn_dsp_sums *s) {
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        s->sums[i] = 0;
    }
    nn_dsp_clear_halves(s);
}

/* An nn_dsp_take that adds. */
static inline void nn_dsp_add_words(void *state, const int8_t *from, int32_t step, int32_t count) {
    nn_dsp_sums *s = (nn_dsp_sums *)state;
    while (count > 0) {
        int32_t run;
        uint32_t even, odd;
        if (s->room == 0) {
            nn_dsp_move_halves(s);
        }
        even = s->even;
        odd = s->odd;
        run = nn_min(count, s->room);
        s->room -= run;
        count -= run;
#pragma GCC unroll 4
        for (; run > 0; run--, from += step) {
            const uint32_t word = nn_load4(from);
            even = nn_sxtab16(even, word);
            odd = nn_sxtab16_ror8(odd, word);
        }
        s->even = even;
        s->odd = odd;
    }
}

#endif
