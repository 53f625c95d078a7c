/* CONV_2D on int16, grouped or not: four output channels at a time along contiguous taps. */
#include "nn_wide_patch.h"

/* The sums of `count` (4 or 1) output channels, whose weights begin at `weights`. */
static inline void sum_taps(int64_t *sums, const nn_wide_conv *conv, const int8_t *weights,
                            int32_t first, int32_t count) {
    const nn_wide_patch *p = &conv->taps;
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * conv->inputs;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            const int16_t *values = nn_wide_in(p->in, y, x) + first;
            run = conv->joined ? nn_run(p->in, x, p->columns.end - kx) : 1;
            if (count == 4) {
                nn_wide_dot4(sums, values, w, conv->size, run * conv->inputs);
            } else {
                *sums += nn_wide_dot(values, w, run * conv->inputs);
            }
            w += run * conv->inputs;
            x += run * p->dilation_w;
        }
    }
}

static void compute_pixel(const nn_wide_conv *conv, const nn_wide_block *block, int32_t groups,
                          int32_t outputs, int16_t *out) {
    const nn_wide_channel *channel = (const nn_wide_channel *)block->channels;
    const int8_t *weights = block->weights;
    for (int32_t group = 0; group < groups; group++) {
        const int32_t first = group * conv->inputs;
        int32_t left = outputs;
        for (; left >= 4; left -= 4, weights += 4 * conv->size) {
            int64_t sums[4] = {0, 0, 0, 0};
            sum_taps(sums, conv, weights, first, 4);
            for (int32_t i = 0; i < 4; i++) {
                *out++ = nn_wide_output(sums[i], channel++, &block->common);
            }
        }
        for (; left > 0; left--, weights += conv->size) {
            int64_t sum = 0;
            sum_taps(&sum, conv, weights, first, 1);
            *out++ = nn_wide_output(sum, channel++, &block->common);
        }
    }
}

void nn_conv2d_s16(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                   const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    nn_wide_conv conv = nn_wide_conv_of(g, in, g->groups);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&conv.taps, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            nn_wide_at_column(&conv.taps, g, x);
            compute_pixel(&conv, &block, g->groups, out->channels / g->groups,
                          nn_wide_out(out, y, x));
        }
    }
}
