/* CONV_2D on int16 without groups, Helium: four channels of a pixel at a time, the inputs read
 * where they are; taps that meet padding are left out. Constants as nn_conv2d_s16's. */
#include "nn_mve_wide.h"
#include "nn_wide_patch.h"

/* Four channels, or one in 64 bits (`four` NULL). */
static inline int64_t sum_taps(int32_t *four, const nn_wide_conv *conv, const int8_t *weights) {
    const nn_wide_patch *p = &conv->taps;
    const int32_t channels = p->in->channels;
    int64_t sum = 0;
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * channels;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            const int16_t *values = nn_wide_in(p->in, y, x);
            run = conv->joined ? nn_run(p->in, x, p->columns.end - kx) : 1;
            if (four != NULL) {
                nn_mve_wide_narrow4(four, values, w, conv->size, run * channels);
            } else {
                sum = nn_mve_wide_long(sum, values, w, run * channels);
            }
            w += run * channels;
            x += run * p->dilation_w;
        }
    }
    return sum;
}

static void compute_pixel(const nn_wide_conv *conv, const nn_wide_block *block, int32_t outputs,
                          int16_t *out) {
    const nn_wide_channel *channels = (const nn_wide_channel *)block->channels;
    const nn_wide_constants common = block->common;
    const int8_t *w = block->weights;
    int32_t c = 0;
    for (; common.sum_bits == 32 && c + 4 <= outputs; c += 4, w += 4 * conv->size) {
        int32_t sums[4] = {0, 0, 0, 0};
        (void)sum_taps(sums, conv, w);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = nn_wide_output(sums[i], channels + c + i, &common);
        }
    }
    for (; c < outputs; c++, w += conv->size) {
        out[c] = nn_wide_output(sum_taps(NULL, conv, w), channels + c, &common);
    }
}

void nn_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    nn_wide_conv conv = nn_wide_conv_of(g, in, 1);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&conv.taps, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            nn_wide_at_column(&conv.taps, g, x);
            compute_pixel(&conv, &block, out->channels, nn_wide_out(out, y, x));
        }
    }
}
