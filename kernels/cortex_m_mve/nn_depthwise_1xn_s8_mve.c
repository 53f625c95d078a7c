/* DEPTHWISE_CONV_2D with a kernel of one row and five to eight columns, stride 1, Helium: the taps
 * as two columns of four rows, which makes whole words of them.
 *
 * The columns of an input row are taken to be rows, each one pixel behind the one before; outputs
 * side by side are columns of an output row. A word has four pixels of a channel then, and the next
 * four taps meet the word four columns further. Where a tap meets padding, or a ring of columns
 * wraps around, outputs are computed one by one, with a column of so many rows as there are taps.
 * Constants: those of such a kernel, as nn_depthwise_conv2d_s8_mve.c says.
 */
#include "nn_mve_depthwise.h"

#define TAPS 8 /* of a vector, some of them zeros */
#define TILE 8 /* outputs computed together */

/* Outputs from column x on that can be computed together: all bytes of their words are in the input
 * and follow one another; `left`: where the first one's begin. 0: not even one. */
static int32_t alike(const nn_view *in, const nn_view *out, int32_t left, int32_t x, int32_t end) {
    if (left < 0 || left + TAPS > in->width) {
        return 0;
    }
    const int32_t room = nn_run(in, left, in->width - left) - (TAPS - 1);
    return nn_min(nn_max(room, 0), nn_run(out, x, end - x));
}

static inline nn_view result_of(const nn_view *out, int32_t y, int32_t x, int32_t count) {
    const nn_view view = {
        nn_out_pixel(out, y, x), 0, out->pixel_stride, 1, count, 0, 1, count, out->channels};
    return view;
}

/* Outputs side by side, from pixel `from` on: of a kernel of four rows and two columns, which are
 * four columns of the input apart. */
static NN_NOINLINE void compute_fours(const void *constants, const int8_t *from, const nn_view *in,
                                      const nn_view *results, void *scratch) {
    static const nn_conv_geometry two_columns = {4, 2, 1, 1, 1, 1, 0, 0, 1};
    const int32_t step = in->pixel_stride, width = results->width + TAPS / 2;
    const nn_view columns = {from, step, step, 4, width, 0, 4, width, in->channels};
    const nn_window all = {0, 1, 0, results->width};
    nn_mve_depthwise d = nn_mve_depthwise_open(&two_columns, constants, &columns, results, scratch);
    d.pitch = 2 * WORD_PITCH; /* as tiles for stride 2 have it, whose loads make an output each */
    d.step = 4 * d.pitch;
    d.met = 1;
    d.apart = d.pitch;
    d.columns = 5;
    d.tile = nn_min(d.tile, TILE); /* 1 where outputs lie far apart */
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
    (void)geometry;
    (void)in;
    (void)out;
    return 16 + WORD_PITCH * (2 * (TILE - 1) + TAPS + 1);
}

void nn_depthwise_1xn_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t row = y * geometry->stride_h - geometry->pad_top;
        const int8_t *const pixels = row >= 0 && row < in->height ? nn_row(in, row) : NULL;
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            const int32_t left = x - geometry->pad_left;
            const int32_t together = pixels == NULL ? 0 : alike(in, out, left, x, window->x1);
            count = nn_max(together, 1);
            const nn_view results = result_of(out, y, x, count);
            if (together > 0) {
                const int8_t *const from = pixels + nn_column(in, left) * in->pixel_stride;
                compute_fours(constants, from, in, &results, scratch);
            } else {
                compute_one(geometry, constants, pixels, left, in, &results, scratch);
            }
        }
    }
}
