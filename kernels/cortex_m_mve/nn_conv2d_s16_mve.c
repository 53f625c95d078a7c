/* CONV_2D on int16 without groups, Helium: four channels of a pixel at a time, the inputs read
 * where they are; taps that meet padding are left out. Constants as nn_conv2d_s16's. */
#include "nn_mve_wide.h"
#include "nn_wide_patch.h"

#define MAX_RUNS 9 /* whose places are remembered; they lie on the stack */

/* Inputs of a pixel that lie one after the other, and where their weights are in a channel's. */
typedef struct {
    const int16_t *values;
    int32_t weights, count;
} tap_run;

/* The rows of taps, each of `columns` columns that lie one after the other from `column` of the
 * ring on. */
static int32_t find_rows(tap_run *runs, const nn_wide_patch *p, int32_t column, int32_t columns) {
    const nn_view *const in = p->in;
    const int32_t rows = p->rows.end - p->rows.first, ring = in->ring_rows * in->row_stride;
    const int32_t step = p->dilation_h % in->ring_rows * in->row_stride;
    const int8_t *const first = nn_row(in, p->y) + column * in->pixel_stride;
    const int8_t *const end = in->data + ring, *row = first;
    int32_t weights = (p->rows.first * p->kernel_w + p->columns.first) * in->channels;
    for (int32_t i = 0; i < rows && i < MAX_RUNS;
         i++, row += step, weights += p->kernel_w * in->channels) {
        row -= row >= end ? ring : 0;
        runs[i].values = (const int16_t *)(const void *)row;
        runs[i].weights = weights;
        runs[i].count = columns * in->channels;
    }
    return rows;
}

/* Divides the taps that meet the input into runs, and returns how many; those from MAX_RUNS on are
 * only counted. */
static NN_NOINLINE int32_t find_runs(tap_run *runs, const nn_wide_conv *conv) {
    const nn_wide_patch *p = &conv->taps;
    const int32_t channels = p->in->channels, columns = p->columns.end - p->columns.first;
    const int32_t column = nn_column(p->in, p->x);
    int32_t found = 0, y = p->y;
    if (conv->joined && columns > 0 && column + columns <= p->in->ring_cols) {
        return find_rows(runs, p, column, columns);
    }
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run, found++) {
            run = conv->joined ? nn_run(p->in, x, p->columns.end - kx) : 1;
            if (found < MAX_RUNS) {
                runs[found].values = nn_wide_in(p->in, y, x);
                runs[found].weights = (ky * p->kernel_w + kx) * channels;
                runs[found].count = run * channels;
            }
            x += run * p->dilation_w;
        }
    }
    return found;
}

/* Sums of four channels, whose weights are `apart` bytes from one another. */
static inline void sum_four(int32_t sums[4], const tap_run *run, int32_t runs,
                            const int8_t *weights, int32_t apart) {
    for (; runs > 0; runs--, run++) {
        nn_mve_wide_narrow4(sums, run->values, weights + run->weights, apart, run->count);
    }
}

static NN_NOINLINE int64_t sum_long(const tap_run *run, int32_t runs, const int8_t *weights) {
    int64_t sum = 0;
    for (; runs > 0; runs--, run++) {
        sum = nn_mve_wide_long(sum, run->values, weights + run->weights, run->count);
    }
    return sum;
}

/* The same of any number of runs. */
static NN_NOINLINE int64_t sum_taps(const nn_wide_conv *conv, const int8_t *weights) {
    const nn_wide_patch *p = &conv->taps;
    const int32_t channels = p->in->channels;
    int64_t sum = 0;
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * channels;
        int32_t x = p->x;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++, w += channels) {
            sum = nn_mve_wide_long(sum, nn_wide_in(p->in, y, x), w, channels);
            x += p->dilation_w;
        }
    }
    return sum;
}

static NN_NOINLINE void put_four(const tap_run *list, int32_t runs, const nn_wide_conv *conv,
                                 const nn_wide_block *block, int32_t c, int16_t *out) {
    const nn_wide_channel *channels = (const nn_wide_channel *)block->channels;
    int32_t sums[4] = {0, 0, 0, 0};
    sum_four(sums, list, runs, block->weights + c * conv->size, conv->size);
    nn_mve_wide_put(out + c, vldrwq_s32(sums), channels + c, &block->common, 4);
}

/* The outputs of a pixel, whose taps are `runs` runs: those of the list, or too many for it. */
static inline void compute_pixel(const nn_wide_conv *conv, const nn_wide_block *block,
                                 const tap_run *list, int32_t runs, int32_t outputs, int16_t *out) {
    const nn_wide_channel *channels = (const nn_wide_channel *)block->channels;
    const int narrow = block->common.sum_bits == 32 && runs <= MAX_RUNS && outputs >= 4;
    int32_t c = 0;
    for (; narrow && c + 4 <= outputs; c += 4) {
        put_four(list, runs, conv, block, c, out);
    }
    if (narrow && c + 1 < outputs) { /* the last four, of which one or two are there already */
        put_four(list, runs, conv, block, outputs - 4, out);
        return;
    }
    for (const int8_t *w = block->weights + c * conv->size; c < outputs; c++, w += conv->size) {
        const int64_t sum = runs <= MAX_RUNS ? sum_long(list, runs, w) : sum_taps(conv, w);
        out[c] = nn_wide_output(sum, channels + c, &block->common);
    }
}

/* How many pixels behind this one have the same runs, each a stride further. */
static inline int32_t followers(const nn_wide_conv *conv, int32_t stride, int32_t runs) {
    const nn_wide_patch *p = &conv->taps;
    const int32_t taps = p->kernel_w, room = nn_run(p->in, p->x, p->in->width - p->x);
    const int all = p->columns.end - p->columns.first == taps && room >= taps && runs <= MAX_RUNS;
    return all && (conv->joined || taps == 1) ? (room - taps) / stride : 0;
}

/* The outputs of a row. */
static void compute_row(nn_wide_conv *conv, const nn_wide_block *block, const nn_conv_geometry *g,
                        const nn_view *out, int32_t y, const nn_window *window) {
    const int32_t step = g->stride_w * conv->taps.in->pixel_stride / (int32_t)sizeof(int16_t);
    tap_run list[MAX_RUNS];
    for (int32_t x = window->x0, left; x < window->x1; x += left) {
        int8_t *result = nn_out_pixel(out, y, x);
        nn_wide_at_column(&conv->taps, g, x);
        const int32_t runs = find_runs(list, conv);
        left = nn_run(out, x, nn_min(followers(conv, g->stride_w, runs) + 1, window->x1 - x));
        for (int32_t i = left; i > 0; i--, result += out->pixel_stride) {
            compute_pixel(conv, block, list, runs, out->channels, (int16_t *)(void *)result);
            for (int32_t run = 0; run < nn_min(runs, MAX_RUNS); run++) {
                list[run].values += step;
            }
        }
    }
}

void nn_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch) {
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    nn_wide_conv conv = nn_wide_conv_of(geometry, in, 1);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&conv.taps, geometry, y);
        compute_row(&conv, &block, geometry, out, y, window);
    }
}
