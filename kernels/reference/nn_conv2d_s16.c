/* CONV_2D on int16, grouped or not: four output channels at a time along contiguous taps. */
#include "nn_wide.h"

/* What the taps of one output pixel meet; all others meet padding, which adds nothing. */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x;   /* of the first tap that meets the input */
    int32_t inputs; /* channels of a group; also the weights of a tap */
    int32_t kernel_w, dilation_h, dilation_w;
    int32_t size; /* weights of an output channel */
    int joined;   /* the inputs of neighbouring columns lie one after the other */
} patch;

/* The sums of `count` (4 or 1) output channels, whose weights begin at `weights`. */
static inline void sum_taps(int64_t *sums, const patch *p, const int8_t *weights, int32_t first,
                            int32_t count) {
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * p->inputs;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            const int16_t *values = nn_wide_in(p->in, y, x) + first;
            run = p->joined ? nn_run(p->in, x, p->columns.end - kx) : 1;
            if (count == 4) {
                nn_wide_dot4(sums, values, w, p->size, run * p->inputs);
            } else {
                *sums += nn_wide_dot(values, w, run * p->inputs);
            }
            w += run * p->inputs;
            x += run * p->dilation_w;
        }
    }
}

static void compute_pixel(const patch *p, const nn_wide_block *block, int32_t groups,
                          int32_t outputs, int16_t *out) {
    const nn_wide_channel *channel = (const nn_wide_channel *)block->channels;
    const int8_t *weights = block->weights;
    for (int32_t group = 0; group < groups; group++) {
        const int32_t first = group * p->inputs;
        int32_t left = outputs;
        for (; left >= 4; left -= 4, weights += 4 * p->size) {
            int64_t sums[4] = {0, 0, 0, 0};
            sum_taps(sums, p, weights, first, 4);
            for (int32_t i = 0; i < 4; i++) {
                *out++ = nn_wide_output(sums[i], channel++, &block->common);
            }
        }
        for (; left > 0; left--, weights += p->size) {
            int64_t sum = 0;
            sum_taps(&sum, p, weights, first, 1);
            *out++ = nn_wide_output(sum, channel++, &block->common);
        }
    }
}

void nn_conv2d_s16(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                   const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    patch p;
    (void)scratch;
    p.in = in;
    p.inputs = in->channels / g->groups;
    p.kernel_w = g->kernel_w;
    p.dilation_h = g->dilation_h;
    p.dilation_w = g->dilation_w;
    p.size = g->kernel_h * g->kernel_w * p.inputs;
    p.joined = g->dilation_w == 1 && g->groups == 1 && nn_wide_dense(in);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        p.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        p.y = top + p.rows.first * g->dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            p.columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
            p.x = left + p.columns.first * g->dilation_w;
            compute_pixel(&p, &block, g->groups, out->channels / g->groups, nn_wide_out(out, y, x));
        }
    }
}
