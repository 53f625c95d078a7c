/* DEPTHWISE_CONV_2D on int16: four channels at a time over all taps; with other depth multipliers
 * channel by channel.
 *
 * A kernel that includes this says before what sums are:
 *     typedef int64_t nn_wide_sum;
 * or int32_t, where there are fewer than 512 taps. */
#ifndef NN_WIDE_DEPTHWISE_H
#define NN_WIDE_DEPTHWISE_H

#include "nn_wide_patch.h"

/* The sums of `count` (4 or 1) output channels from c on, of `outputs` channels; `of`: the input
 * channel of the first. */
static inline void sum_taps(nn_wide_sum *sums, const nn_wide_patch *p, const int8_t *weights,
                            int32_t outputs, int32_t c, int32_t of, int32_t count) {
    int32_t y = p->y;
    for (int32_t i = 0; i < count; i++) {
        sums[i] = 0;
    }
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * outputs + c;
        const int8_t *row = nn_row(p->in, y) + 2 * of;
        int32_t x = p->x;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++, x += p->dilation_w) {
            const int8_t *place = row + nn_column(p->in, x) * p->in->pixel_stride;
            const int16_t *values = (const int16_t *)(const void *)place;
            for (int32_t i = 0; i < count; i++) {
                sums[i] += (nn_wide_sum)values[i] * w[i];
            }
            w += outputs;
        }
    }
}

static inline __attribute__((always_inline)) void
nn_wide_depthwise(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                  const nn_view *out, const nn_window *window) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const nn_wide_channel *channels = (const nn_wide_channel *)block.channels;
    const int32_t outputs = out->channels, multiplier = g->groups;
    nn_wide_patch p = nn_wide_patches(g, in);
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&p, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            int16_t *result = nn_wide_out(out, y, x);
            int32_t c = 0;
            nn_wide_at_column(&p, g, x);
            for (; multiplier == 1 && c + 4 <= outputs; c += 4) {
                nn_wide_sum sums[4];
                sum_taps(sums, &p, block.weights, outputs, c, c, 4);
                for (int32_t i = 0; i < 4; i++) {
                    result[c + i] = nn_wide_output(sums[i], channels + c + i, &block.common);
                }
            }
            for (; c < outputs; c++) {
                nn_wide_sum sum;
                sum_taps(&sum, &p, block.weights, outputs, c, c / multiplier, 1);
                result[c] = nn_wide_output(sum, channels + c, &block.common);
            }
        }
    }
}

#endif
