/* DEPTHWISE_CONV_2D with a kernel of one row and up to sixteen columns, Helium: the taps as up to
 * four columns of four rows, which makes whole words of them. Strides 1, 2 and 4. A kernel of one
 * column, over an input of one column, is such a kernel with rows and columns exchanged.
 *
 * A word has four neighbouring pixels of a channel, from the first one that an output's taps meet
 * on; the next output's word begins a stride further. The next four taps meet the word 4 / stride
 * outputs further. Where a pixel is padding, or a ring of columns wraps around, words are spread
 * one by one. Constants: those of a kernel of four rows and a column for each word, as
 * nn_depthwise_conv2d_s8_mve.c says.
 */
#include "nn_mve_depthwise_line.h"

/* What the tiles share, and the layer's own geometry. */
typedef struct {
    nn_mve_depthwise depthwise;
    const nn_conv_geometry *geometry;
} line;

/* Words in a row from pixel x of `width` on that are alike, at most `most`: each a stride further,
 * all padding or all inside and in a row; else 1. */
static inline int32_t alike(const nn_view *in, int32_t width, int32_t stride, int32_t x,
                            int32_t most) {
    if (x >= width) {
        return most;
    }
    const int32_t room = x < 0 ? -x : nn_run(in, x, width - x);
    return room < 4 ? 1 : nn_min((room - 4) / stride + 1, most);
}

/* Finds the four pixels of a word from pixel x on, and how far they are from the next word's. */
static inline void find_pixels(nn_mve_rows *rows, const nn_mve_depthwise *d, const int8_t *row,
                               int32_t width, int32_t x, int32_t stride) {
    const nn_view *const in = d->in;
    const int32_t pixel = in->pixel_stride, step = stride * pixel, ring = in->ring_cols;
    const int32_t column = nn_column(in, nn_max(x, 0)) + nn_min(x, 0);
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const mve_pred16_t inside =
        vcmphiq_u32(vdupq_n_u32((uint32_t)width), vaddq_n_u32(lanes, (uint32_t)x));
    int32x4_t place = vaddq_n_s32(vreinterpretq_s32_u32(lanes), column);
    place = vsubq_m_n_s32(place, place, ring, vcmpgeq_n_s32(place, ring));
    place = vaddq_n_s32(vmulq_n_s32(place, pixel), (int32_t)(intptr_t)row);
    place = vpselq_s32(place, vdupq_n_s32((int32_t)(intptr_t)d->zeros), inside);
    vstrwq_u32(rows->row, vreinterpretq_u32_s32(place));
    vstrwq_s32(rows->step, vpselq_s32(vdupq_n_s32(step), vdupq_n_s32(0), inside));
}

/* Spreads the words of a tile. */
static void spread_line(const nn_mve_depthwise *d, const nn_mve_words *w, int32_t c,
                        int32_t channels) {
    const nn_conv_geometry *const g = ((const line *)d)->geometry;
    const nn_view *const in = d->in;
    const int32_t y = w->y * g->stride_h - g->pad_top;
    const int is_row = y >= 0 && y < in->height;
    const int8_t *const row = is_row ? nn_row(in, y) : d->zeros;
    const int32_t width = is_row ? in->width : 0; /* else all is padding */
    nn_mve_spread *const spread = d->columns > 1 ? nn_mve_spread_4_apart : nn_mve_spread_4;
    int32_t x = w->first * g->stride_w - g->pad_left;
    int8_t *to = d->words;
    nn_mve_rows rows;
    rows.apart = d->pitch - WORD_PITCH;
    for (int32_t left = w->count, some; left > 0; left -= some) {
        some = alike(in, width, g->stride_w, x, left);
        find_pixels(&rows, d, row, width, x, g->stride_w);
        spread(to, &rows, c, some, channels);
        to += some * d->pitch;
        x += some * g->stride_w;
    }
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
    static const nn_conv_geometry one_vector = {4, 1, 1, 1, 1, 1, 0, 0, 1};
    const int32_t words = nn_mve_line_words(geometry->kernel_w), next = 4 / geometry->stride_w;
    line l = {nn_mve_depthwise_open(&one_vector, constants, in, out, scratch), geometry};
    nn_mve_depthwise *const d = &l.depthwise;
    d->spread = spread_line;
    vstrbq_s8(d->zeros, vdupq_n_s8((int8_t)d->head->common.input_zero_point));
    if (words > 1) {
        d->pitch = 2 * WORD_PITCH; /* as tiles for stride 2 have it: a load makes an output */
        d->step = next * d->pitch;
        d->met = (uint32_t)nn_mve_words_met(geometry->kernel_w) - 1;
        d->apart = d->pitch;
        d->columns = next * (words - 1) + 1;
        d->tile = nn_min(d->tile, NN_MVE_LINE_TILE); /* 1 where outputs lie far apart */
    }
    nn_mve_depthwise_rows(d, window);
}
