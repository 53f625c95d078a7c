/* DEPTHWISE_CONV_2D on int16: four channels at a time over all taps; with other depth multipliers
 * channel by channel. */
#include "nn_wide.h"

/* What the taps of one output pixel meet; all others meet padding, which adds nothing. */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x; /* of the first tap that meets the input */
    int32_t kernel_w, dilation_h, dilation_w;
    int32_t outputs;
} patch;

/* The sums of `count` (4 or 1) output channels from c on; `of`: the input channel of the first. */
static inline void sum_taps(int64_t *sums, const patch *p, const int8_t *weights, int32_t c,
                            int32_t of, int32_t count) {
    int32_t y = p->y;
    for (int32_t i = 0; i < count; i++) {
        sums[i] = 0;
    }
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * p->outputs + c;
        const int8_t *row = nn_row(p->in, y) + 2 * of;
        int32_t x = p->x;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++, x += p->dilation_w) {
            const int8_t *place = row + nn_column(p->in, x) * p->in->pixel_stride;
            const int16_t *values = (const int16_t *)(const void *)place;
            for (int32_t i = 0; i < count; i++) {
                sums[i] += (int64_t)values[i] * w[i];
            }
            w += p->outputs;
        }
    }
}

void nn_depthwise_conv2d_s16(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const nn_wide_channel *channels = (const nn_wide_channel *)block.channels;
    const int32_t outputs = out->channels, multiplier = g->groups;
    patch p;
    (void)scratch;
    p.in = in;
    p.kernel_w = g->kernel_w;
    p.dilation_h = g->dilation_h;
    p.dilation_w = g->dilation_w;
    p.outputs = outputs;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        p.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        p.y = top + p.rows.first * g->dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            int16_t *result = nn_wide_out(out, y, x);
            int32_t c = 0;
            p.columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
            p.x = left + p.columns.first * g->dilation_w;
            for (; multiplier == 1 && c + 4 <= outputs; c += 4) {
                int64_t sums[4];
                sum_taps(sums, &p, block.weights, c, c, 4);
                for (int32_t i = 0; i < 4; i++) {
                    result[c + i] = nn_wide_output(sums[i], channels + c + i, &block.common);
                }
            }
            for (; c < outputs; c++) {
                int64_t sum;
                sum_taps(&sum, &p, block.weights, c, c / multiplier, 1);
                result[c] = nn_wide_output(sum, channels + c, &block.common);
            }
        }
    }
}
