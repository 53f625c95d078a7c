/* CONV_2D, grouped or not: four output channels at a time along contiguous taps. */
#include "nn_arith.h"

/* What the taps of one output pixel meet. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x;        /* of the first tap that meets the input */
    int32_t inputs;      /* channels of a group */
    int32_t kernel_size; /* weights of an output channel */
} patch;

/* Taps along a row, from column x on, whose inputs lie one after the other. */
static inline int32_t run_length(const patch *p, int32_t x, int32_t wanted) {
    const int contiguous = p->geometry->dilation_w == 1 && p->geometry->groups == 1;
    return contiguous ? nn_run(p->in, x, wanted) : 1;
}

/* Four output channels' sums over the taps that meet the input; `first`: the group's channel. */
static inline void sum_inside4(int32_t sums[4], const patch *p, const int8_t *weights,
                               int32_t first) {
    const nn_conv_geometry *g = p->geometry;
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += g->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + first;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            run = run_length(p, x, p->columns.end - kx);
            nn_dot4(sums, row + nn_column(p->in, x) * p->in->channels,
                    weights + (ky * g->kernel_w + kx) * p->inputs, p->kernel_size, run * p->inputs);
            x += run * g->dilation_w;
        }
    }
}

static inline int32_t sum_inside(const patch *p, const int8_t *weights, int32_t first) {
    const nn_conv_geometry *g = p->geometry;
    int32_t y = p->y, sum = 0;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += g->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + first;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            run = run_length(p, x, p->columns.end - kx);
            sum += nn_dot(row + nn_column(p->in, x) * p->in->channels,
                          weights + (ky * g->kernel_w + kx) * p->inputs, run * p->inputs);
            x += run * g->dilation_w;
        }
    }
    return sum;
}

/* The sum of the weights that meet padding. */
static int32_t sum_outside(const patch *p, const int8_t *weights) {
    const int32_t tap = p->inputs, row = p->geometry->kernel_w * tap;
    int32_t sum = nn_sum(weights, p->rows.first * row);
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        const int8_t *line = weights + ky * row;
        sum += nn_sum(line, p->columns.first * tap);
        sum += nn_sum(line + p->columns.end * tap, row - p->columns.end * tap);
    }
    return sum + nn_sum(weights + p->rows.end * row, (p->geometry->kernel_h - p->rows.end) * row);
}

/* All output channels of one pixel. */
static inline void compute_pixel(const patch *p, const nn_conv_block *block, int8_t *out,
                                 int32_t outputs) {
    const nn_conv_geometry *g = p->geometry;
    const int clipped = p->rows.end - p->rows.first < g->kernel_h ||
                        p->columns.end - p->columns.first < g->kernel_w;
    const int32_t border = clipped ? block->common->input_zero_point : 0;
    const int32_t group_outputs = outputs / g->groups;
    const nn_channel *channel = block->channels;
    const int8_t *weights = block->weights;
    for (int32_t group = 0; group < g->groups; group++) {
        const int32_t first = group * p->inputs;
        int32_t left = group_outputs;
        for (; left >= 4; left -= 4) {
            int32_t sums[4] = {0, 0, 0, 0};
            sum_inside4(sums, p, weights, first);
            for (int32_t i = 0; i < 4; i++, weights += p->kernel_size) {
                if (border != 0) {
                    sums[i] += border * sum_outside(p, weights);
                }
                *out++ = nn_conv_output(sums[i], channel++, block->common);
            }
        }
        for (; left > 0; left--, weights += p->kernel_size) {
            int32_t sum = sum_inside(p, weights, first);
            if (border != 0) {
                sum += border * sum_outside(p, weights);
            }
            *out++ = nn_conv_output(sum, channel++, block->common);
        }
    }
}

void nn_conv2d_s8(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                  const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    patch p;
    (void)scratch;
    p.geometry = geometry;
    p.in = in;
    p.inputs = in->channels / geometry->groups;
    p.kernel_size = geometry->kernel_h * geometry->kernel_w * p.inputs;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * geometry->stride_h - geometry->pad_top;
        int8_t *row = nn_row(out, y);
        p.rows = nn_valid_taps(top, in->height, geometry->kernel_h, geometry->dilation_h);
        p.y = top + p.rows.first * geometry->dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * geometry->stride_w - geometry->pad_left;
            p.columns = nn_valid_taps(left, in->width, geometry->kernel_w, geometry->dilation_w);
            p.x = left + p.columns.first * geometry->dilation_w;
            compute_pixel(&p, &block, row + nn_column(out, x) * out->channels, out->channels);
        }
    }
}
