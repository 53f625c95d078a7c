/* DEPTHWISE_CONV_2D with a kernel of one row and up to sixteen columns, stride 1, Helium: the taps
 * as up to four columns of four rows, which makes whole words of them. A kernel of one column, over
 * an input of one column, is such a kernel with rows and columns exchanged.
 *
 * The columns of an input row are taken to be rows, each one pixel behind the one before; outputs
 * side by side are columns of an output row. A word has four pixels of a channel then, and the next
 * four taps meet the word four columns further. Where a tap meets padding, or a ring of columns
 * wraps around, outputs are computed one by one, with a column of as many rows as there are taps.
 * Constants: those of such a kernel, as nn_depthwise_conv2d_s8_mve.c says.
 */
#include "nn_mve_depthwise.h"

#define TILE 8 /* outputs computed together, of more than four taps */
#define FEW 4  /* rows of one column for which one after the other is as fast */

/* Words of a channel's taps, the last one filled up with zeros. */
static inline int32_t words_of(int32_t taps) {
    return (taps + 3) >> 2;
}

/* Words that a vector takes from different columns: one, two or four. */
static inline int32_t words_met(int32_t taps) {
    return taps <= 8 ? words_of(taps) : 4;
}

/* Outputs from column x on that can be computed together: all bytes of their words are in the input
 * and follow one another; `left`: where the first one's begin. 0: not even one. */
static int32_t alike(const nn_view *in, const nn_view *out, int32_t taps, int32_t left, int32_t x,
                     int32_t end) {
    const int32_t bytes = 4 * words_of(taps);
    if (left < 0 || left + bytes > in->width) {
        return 0;
    }
    const int32_t room = nn_run(in, left, in->width - left) - (bytes - 1);
    return nn_min(nn_max(room, 0), nn_run(out, x, end - x));
}

static inline nn_view result_of(const nn_view *out, int32_t y, int32_t x, int32_t count) {
    const nn_view view = {
        nn_out_pixel(out, y, x), 0, out->pixel_stride, 1, count, 0, 1, count, out->channels};
    return view;
}

/* Outputs side by side, from pixel `from` on: of a kernel of four rows and a column for each word;
 * columns are four columns of the input apart. */
static NN_NOINLINE void compute_fours(const void *constants, int32_t taps, const int8_t *from,
                                      const nn_view *in, const nn_view *results, void *scratch) {
    static const nn_conv_geometry one_vector = {4, 1, 1, 1, 1, 1, 0, 0, 1};
    const int32_t words = words_of(taps), step = in->pixel_stride;
    const int32_t width = results->width + 4 * (words - 1);
    const nn_view columns = {from, step, step, 4, width, 0, 4, width, in->channels};
    const nn_window all = {0, 1, 0, results->width};
    nn_mve_depthwise d = nn_mve_depthwise_open(&one_vector, constants, &columns, results, scratch);
    if (words > 1) {
        d.pitch = 2 * WORD_PITCH; /* as tiles for stride 2 have it: a load makes an output */
        d.step = 4 * d.pitch;
        d.met = (uint32_t)words_met(taps) - 1;
        d.apart = d.pitch;
        d.columns = 4 * (words - 1) + 1;
        d.tile = nn_min(d.tile, TILE); /* 1 where outputs lie far apart */
    }
    nn_mve_depthwise_rows(&d, &all);
}

/* One output, whose taps begin in column `left` of row `row`, NULL if that is padding. */
static NN_NOINLINE void compute_one(const nn_conv_geometry *g, const void *constants,
                                    const int8_t *row, int32_t left, const nn_view *in,
                                    const nn_view *result, void *scratch) {
    const nn_conv_geometry one_column = {g->kernel_w, 1, 1, 1, 1, 1, in->x0 - left, 0, 1};
    const nn_window all = {0, 1, 0, 1};
    const int32_t rows = row == NULL ? 0 : in->width - in->x0;
    const nn_view columns = {row == NULL ? in->data : row,
                             in->pixel_stride,
                             in->pixel_stride,
                             in->ring_cols,
                             1,
                             0,
                             rows,
                             1,
                             in->channels};
    nn_depthwise_conv2d_s8_mve(&one_column, constants, &columns, result, &all, scratch);
}

static int32_t scratch_bytes(int32_t taps) {
    const int32_t last = taps <= 4 ? 15 : 2 * (TILE - 1 + 4 * (words_met(taps) - 1));
    return 16 + WORD_PITCH * (taps <= 4 ? last + 4 : last + 1);
}

int32_t nn_depthwise_1xn_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    (void)out;
    return scratch_bytes(geometry->kernel_w);
}

int32_t nn_depthwise_nx1_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    (void)out;
    return scratch_bytes(geometry->kernel_h);
}

void nn_depthwise_1xn_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const int32_t taps = geometry->kernel_w;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t row = y * geometry->stride_h - geometry->pad_top;
        const int8_t *const pixels = row >= 0 && row < in->height ? nn_row(in, row) : NULL;
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            const int32_t left = x - geometry->pad_left;
            const int32_t together = pixels == NULL ? 0 : alike(in, out, taps, left, x, window->x1);
            count = nn_max(together, 1);
            const nn_view results = result_of(out, y, x, count);
            if (together > 0) {
                const int8_t *const from = pixels + nn_column(in, left) * in->pixel_stride;
                compute_fours(constants, taps, from, in, &results, scratch);
            } else {
                compute_one(geometry, constants, pixels, left, in, &results, scratch);
            }
        }
    }
}

/* The only column of a view as its only row. */
static inline nn_view turned(const nn_view *view) {
    const nn_view row = {view->data, 0, view->row_stride, 1, view->ring_rows, 0, 1, view->height,
                         view->channels};
    return row;
}

void nn_depthwise_nx1_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const int32_t taps = geometry->kernel_h, top = geometry->pad_top;
    const nn_conv_geometry row = {1, taps, 1, 1, 1, 1, 0, top, 1};
    const nn_view from = turned(in), to = turned(out);
    const int32_t first = nn_clamp(top, window->y0, window->y1);
    const int32_t last = nn_clamp(in->height - 4 * words_of(taps) + top + 1, first, window->y1);
    nn_window above = *window, below = *window;
    const nn_window inside = {0, 1, first, last};
    above.y1 = first;
    below.y0 = last;
    if (last - first < FEW) {
        above.y1 = window->y1;
    } else {
        nn_depthwise_1xn_s8_mve(&row, constants, &from, &to, &inside, scratch);
        nn_depthwise_conv2d_s8_mve(geometry, constants, in, out, &below, scratch);
    }
    nn_depthwise_conv2d_s8_mve(geometry, constants, in, out, &above, scratch);
}
