/* CONV_2D on int16 without groups: two channels of two pixels at a time.
 *
 * A pixel's inputs are read where they are if they are whole quads that lie one after the other
 * (kernel 1 x 1 without padding), else they are gathered into scratch first, zeros where there is
 * padding. Packed constants: as nn_conv2d_s16's, with the weights of nn_dsp_wide.h.
 */
#include "nn_dsp_wide.h"

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    const nn_wide_block *block;
    int32_t quads; /* of a pixel's inputs */
    int direct;    /* inputs are read where they are */
    int joined;    /* the inputs of neighbouring columns lie one after the other */
} layer;

/* Zeros; there are none at most pixels. */
static inline void clear(int16_t *to, int32_t count) {
    if (count > 0) {
        __builtin_memset(to, 0, 2 * (size_t)count);
    }
}

/* Copies what the taps of an output pixel meet; zeros for padding. */
NN_OUTLINE void gather(const layer *l, int32_t top, int32_t left, int16_t *to) {
    const nn_conv_geometry *g = l->geometry;
    const nn_view *in = l->in;
    const int32_t channels = in->channels;
    const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
    for (int32_t ky = 0; ky < g->kernel_h; ky++, to += g->kernel_w * channels) {
        const int32_t y = top + ky * g->dilation_h;
        const int32_t end = y < 0 || y >= in->height ? 0 : columns.end;
        const int32_t first = nn_min(columns.first, end);
        int32_t run;
        clear(to, first * channels);
        for (int32_t kx = first; kx < end; kx += run) {
            const int32_t x = left + kx * g->dilation_w;
            run = l->joined ? nn_run(in, x, end - kx) : 1;
            __builtin_memcpy(to + kx * channels, nn_wide_in(in, y, x),
                             2 * (size_t)(run * channels));
        }
        clear(to + end * channels, (g->kernel_w - end) * channels);
    }
}

/* Where the inputs of the output pixel (y, x) lie; `to`: room for them. */
static inline const int16_t *inputs(const layer *l, int32_t y, int32_t x, int16_t *to) {
    const int32_t top = y * l->geometry->stride_h - l->geometry->pad_top;
    const int32_t left = x * l->geometry->stride_w - l->geometry->pad_left;
    if (l->direct) {
        return nn_wide_in(l->in, top, left);
    }
    gather(l, top, left, to);
    return to;
}

/* The outputs of one or two pixels (x1 NULL: of one). */
static void compute(const layer *l, const int16_t *x0, const int16_t *x1, int16_t *out0,
                    int16_t *out1, int32_t outputs) {
    const nn_wide_channel *channel = (const nn_wide_channel *)l->block->channels;
    const uint32_t *w = (const uint32_t *)(const void *)l->block->weights;
    const nn_wide_constants common = l->block->common;
    for (int32_t c = 0; c < outputs; c += 2) {
        const int32_t count = nn_min(2, outputs - c);
        int64_t sums[4];
        w = nn_dsp_wide_pair(sums, common.sum_bits, w, x0, x1, l->quads);
        for (int32_t i = 0; i < count; i++, channel++) {
            out0[c + i] = nn_wide_output(sums[i], channel, &common);
            if (x1 != NULL) {
                out1[c + i] = nn_wide_output(sums[2 + i], channel, &common);
            }
        }
    }
}

void nn_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const int32_t size = g->kernel_h * g->kernel_w * in->channels, quads = (size + 3) / 4;
    layer l = {geometry, in, &block, quads, scratch == NULL, 0};
    int16_t *room0 = (int16_t *)scratch, *room1 = NULL;
    l.joined = g->dilation_w == 1 && nn_wide_dense(in);
    if (scratch != NULL) {
        room1 = room0 + 4 * quads;
        __builtin_memset(room1 - 4, 0, 8); /* what fills up the last quads */
        __builtin_memset(room1 + 4 * quads - 4, 0, 8);
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x += 2) {
            const int16_t *x0 = inputs(&l, y, x, room0), *x1 = NULL;
            int16_t *out1 = NULL;
            if (x + 1 < window->x1) {
                x1 = inputs(&l, y, x + 1, room1);
                out1 = nn_wide_out(out, y, x + 1);
            }
            compute(&l, x0, x1, nn_wide_out(out, y, x), out1, out->channels);
        }
    }
}
