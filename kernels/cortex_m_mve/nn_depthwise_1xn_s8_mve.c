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
#include "nn_mve_depthwise_line.h"

/* Outputs from column x on that can be computed together: all bytes of their words are in the input
 * and follow one another; `left`: where the first one's begin. 0: not even one. */
static int32_t alike(const nn_view *in, const nn_view *out, int32_t taps, int32_t left, int32_t x,
                     int32_t end) {
    const int32_t bytes = 4 * nn_mve_line_words(taps);
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
    const int32_t words = nn_mve_line_words(taps), step = in->pixel_stride;
    const int32_t width = results->width + 4 * (words - 1);
    const nn_view columns = {from, step, step, 4, width, 0, 4, width, in->channels};
    const nn_window all = {0, 1, 0, results->width};
    nn_mve_depthwise d = nn_mve_depthwise_open(&one_vector, constants, &columns, results, scratch);
    if (words > 1) {
        d.pitch = 2 * WORD_PITCH; /* as tiles for stride 2 have it: a load makes an output */
        d.step = 4 * d.pitch;
        d.met = (uint32_t)nn_mve_words_met(taps) - 1;
        d.apart = d.pitch;
        d.columns = 4 * (words - 1) + 1;
        d.tile = nn_min(d.tile, NN_MVE_LINE_TILE); /* 1 where outputs lie far apart */
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

int32_t nn_depthwise_1xn_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    (void)out;
    return nn_mve_line_scratch(geometry->kernel_w);
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
