/* CONV_2D of any kernel size without scratch: a pixel at a time, four output channels together,
 * from inputs that are widened as they are read. Channels of the input are a multiple of four, so
 * no quad of inputs reaches from tap to tap, and rows of taps have no rest (see
 * nn_conv2d_s8_dsp.c).
 */
#include "nn_dsp_matmul.h"

#define TOGETHER 4 /* output channels: two pairs */

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    int32_t tap_quads, quads; /* of a tap, of all taps */
    int joined;               /* the taps of a row lie one behind the other */
    uint32_t padding;         /* twice the input's zero point */
} layer;

/* The weights of two pairs of output channels, which may be the same one. */
typedef struct {
    const uint32_t *first, *second;
} stream;

/* Adds the products of `quads` quads of inputs at x, or of padding if that is NULL (template).
 * Sums: of each pair that of the even channel, then that of both; with `exact` that of the odd
 * channel. */
static inline __attribute__((always_inline)) void add(int32_t sums[TOGETHER], stream *w,
                                                      const int8_t *x, uint32_t padding,
                                                      int32_t quads, const int padded,
                                                      const int exact) {
    const uint32_t *a = w->first, *b = w->second, *end = a + 2 * quads;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    while (a != end) {
        const uint32_t four = padded ? 0 : nn_load4(x);
        const uint32_t low = padded ? padding : nn_sxtb16(four);
        const uint32_t high = padded ? padding : nn_sxtb16_ror8(four);
        const uint32_t a0 = a[0], a1 = a[1], b0 = b[0], b1 = b[1];
        const uint32_t even_a0 = nn_sxtb16(a0), even_a1 = nn_sxtb16(a1);
        const uint32_t even_b0 = nn_sxtb16(b0), even_b1 = nn_sxtb16(b1);
        s0 = nn_smlad(even_a1, high, nn_smlad(even_a0, low, s0));
        s2 = nn_smlad(even_b1, high, nn_smlad(even_b0, low, s2));
        if (exact) {
            s1 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(a0, even_a0)), low, s1);
            s1 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(a1, even_a1)), high, s1);
            s3 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(b0, even_b0)), low, s3);
            s3 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(b1, even_b1)), high, s3);
        } else {
            s1 = nn_smlad(a1, high, nn_smlad(a0, low, s1));
            s3 = nn_smlad(b1, high, nn_smlad(b0, low, s3));
        }
        a += 2;
        b += 2;
        x = padded ? x : x + 4;
    }
    w->first = a;
    w->second = b;
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

NN_OUTLINE void add_inputs(int32_t sums[TOGETHER], stream *w, const int8_t *x, int32_t quads) {
    add(sums, w, x, 0, quads, 0, 0);
}

NN_OUTLINE void add_inputs_exactly(int32_t sums[TOGETHER], stream *w, const int8_t *x,
                                   int32_t quads) {
    add(sums, w, x, 0, quads, 0, 1);
}

NN_OUTLINE void add_padding(int32_t sums[TOGETHER], stream *w, uint32_t padding, int32_t quads,
                            int exact) {
    if (exact) {
        add(sums, w, NULL, padding, quads, 1, 1);
    } else {
        add(sums, w, NULL, padding, quads, 1, 0);
    }
}

/* The sums of the output pixel whose first tap is at (top, left). */
static void sum_pixel(int32_t sums[TOGETHER], const layer *l, stream w, int32_t top, int32_t left,
                      int exact) {
    const nn_conv_geometry *g = l->geometry;
    const nn_view *in = l->in;
    const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
    const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        const int inside = ky >= rows.first && ky < rows.end && columns.first < columns.end;
        const int32_t first = inside ? columns.first : g->kernel_w;
        int32_t run;
        if (first > 0) {
            add_padding(sums, &w, l->padding, first * l->tap_quads, exact);
        }
        for (int32_t kx = first; kx < columns.end; kx += run) {
            const int32_t x = left + kx * g->dilation_w;
            const int8_t *from = nn_pixel(in, top + ky * g->dilation_h, x);
            run = l->joined ? nn_run(in, x, columns.end - kx) : 1;
            if (exact) {
                add_inputs_exactly(sums, &w, from, run * l->tap_quads);
            } else {
                add_inputs(sums, &w, from, run * l->tap_quads);
            }
        }
        if (inside && columns.end < g->kernel_w) {
            add_padding(sums, &w, l->padding, (g->kernel_w - columns.end) * l->tap_quads, exact);
        }
    }
}

/* All channels of the output pixel (y, x). */
static void compute_pixel(const layer *l, const nn_dsp_constants *constants, int32_t channels,
                          int32_t y, int32_t x, int8_t *out) {
    const int32_t top = y * l->geometry->stride_h - l->geometry->pad_top;
    const int32_t left = x * l->geometry->stride_w - l->geometry->pad_left;
    const int32_t weights = 2 * l->quads, pair = weights + 2 * (int32_t)sizeof(nn_dsp_channel) / 4;
    const uint32_t *words = (const uint32_t *)(const void *)(constants + 1);
    for (int32_t c = 0; c < channels; c += TOGETHER) {
        const uint32_t *first = words + c / 2 * pair;
        const stream w = {first, c + 2 < channels ? first + pair : first};
        const int exact = c < constants->general_end && c + TOGETHER > constants->general_first;
        int32_t sums[TOGETHER];
        sum_pixel(sums, l, w, top, left, exact);
        if (!exact) {
            sums[1] = (int32_t)((uint32_t)sums[1] - (uint32_t)sums[0]) >> 8;
            sums[3] = (int32_t)((uint32_t)sums[3] - (uint32_t)sums[2]) >> 8;
        }
        for (int32_t i = 0; i < nn_min(TOGETHER, channels - c); i++) {
            const uint32_t *behind = (i < 2 ? w.first : w.second) + weights;
            const nn_dsp_channel *channel = (const nn_dsp_channel *)(const void *)behind + i % 2;
            const int general = c + i >= constants->general_first && c + i < constants->general_end;
            out[c + i] = general ? nn_dsp_general_output(sums[i], channel, &constants->common)
                                 : (int8_t)nn_dsp_output(sums[i], channel);
        }
    }
    nn_dsp_clamp(out, channels, constants->common.clamp_min, constants->common.clamp_max);
}

void nn_conv2d_direct_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_dsp_constants *c = (const nn_dsp_constants *)constants;
    const layer l = {
        .geometry = geometry,
        .in = in,
        .tap_quads = in->channels / 4,
        .quads = geometry->kernel_h * geometry->kernel_w * (in->channels / 4),
        .joined = geometry->kernel_w == 1 || (geometry->dilation_w == 1 && nn_dense(in)),
        .padding = nn_times2(c->common.input_zero_point),
    };
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            compute_pixel(&l, c, out->channels, y, x, nn_out_pixel(out, y, x));
        }
    }
}
