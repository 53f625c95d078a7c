/* CONV_2D, grouped or not: four output channels at a time along contiguous taps. */
#include "nn_conv.h"
#include "nn_dot.h"

/* What the taps of one output pixel meet. */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x;    /* of the first tap that meets the input */
    int32_t inputs;  /* channels of a group; also the weights of a tap */
    int32_t outputs; /* output channels of a group */
    int32_t groups;
    int32_t kernel_h, kernel_w, dilation_h, dilation_w;
    int32_t size; /* weights of an output channel */
    int joined;   /* the inputs of neighbouring columns lie one after the other */
    int32_t run;  /* taps along a row whose inputs do, from x on */
} patch;

/* The taps from column x on, at most `wanted`, whose inputs lie one after the other. */
static inline int32_t run_length(const patch *p, int32_t x, int32_t wanted) {
    return p->joined ? nn_run(p->in, x, wanted) : 1;
}

/* Four output channels' sums over the taps that meet the input; `first`: the group's channel. */
NN_OUTLINE void sum_inside4(int32_t sums[4], const patch *p, const int8_t *weights, int32_t first) {
    const int32_t columns = p->columns.end - p->columns.first;
    int32_t y = p->y;
    weights += (p->rows.first * p->kernel_w + p->columns.first) * p->inputs;
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    for (int32_t rows = p->rows.end - p->rows.first; rows > 0; rows--, y += p->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + first, *w = weights;
        int32_t x = p->x, left = columns, run = p->run;
        while (left > 0) {
            nn_dot4(sums, row + nn_column(p->in, x) * p->in->pixel_stride, w, p->size,
                    run * p->inputs);
            left -= run;
            w += run * p->inputs;
            x += run * p->dilation_w;
            run = run_length(p, x, left);
        }
        weights += p->kernel_w * p->inputs;
    }
}

/* One output channel's sum, likewise. */
NN_OUTLINE int32_t sum_inside(const patch *p, const int8_t *weights, int32_t first) {
    int32_t y = p->y, sum = 0;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + first;
        int32_t x = p->x, run;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx += run) {
            run = run_length(p, x, p->columns.end - kx);
            sum += nn_dot(row + nn_column(p->in, x) * p->in->pixel_stride,
                          weights + (ky * p->kernel_w + kx) * p->inputs, run * p->inputs);
            x += run * p->dilation_w;
        }
    }
    return sum;
}

/* Adds the products of four output channels' weights with the padding, which holds `value`. */
NN_OUTLINE void sum_outside4(int32_t sums[4], const patch *p, const int8_t *weights,
                             int32_t value) {
    const int32_t size = p->size, tap = p->inputs, row = p->kernel_w * tap;
    const int32_t left = p->columns.first * tap, right = p->columns.end * tap;
    nn_sum4(sums, value, weights, size, p->rows.first * row);
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        const int8_t *line = weights + ky * row;
        nn_sum4(sums, value, line, size, left);
        nn_sum4(sums, value, line + right, size, row - right);
    }
    nn_sum4(sums, value, weights + p->rows.end * row, size, (p->kernel_h - p->rows.end) * row);
}

/* One output channel's, likewise. */
NN_OUTLINE int32_t sum_outside(const patch *p, const int8_t *weights, int32_t value) {
    int32_t sum = 0;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int row_inside = ky >= p->rows.first && ky < p->rows.end;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, weights += p->inputs) {
            if (!row_inside || kx < p->columns.first || kx >= p->columns.end) {
                for (int32_t i = 0; i < p->inputs; i++) {
                    sum += value * weights[i];
                }
            }
        }
    }
    return sum;
}

/* One group's output channels of one pixel; `border`: what the padding holds, 0 without any. */
static inline void compute_group(const patch *p, const nn_conv_block *block, int32_t group,
                                 int32_t border, int8_t *out) {
    const int32_t first = group * p->inputs;
    const nn_channel *channel = block->channels + group * p->outputs;
    const int8_t *weights = block->weights + group * p->outputs * p->size;
    int32_t left = p->outputs;
    for (; NN_FOURS && left >= 4; left -= 4, channel += 4, out += 4, weights += 4 * p->size) {
        int32_t sums[4];
        sum_inside4(sums, p, weights, first);
        if (border != 0) {
            sum_outside4(sums, p, weights, border);
        }
        nn_conv_output4(sums, channel, &block->common, out);
    }
    for (; left > 0; left--, weights += p->size) {
        int32_t sum = sum_inside(p, weights, first);
        if (border != 0) {
            sum += sum_outside(p, weights, border);
        }
        *out++ = nn_conv_output(sum, channel++, &block->common);
    }
}

static inline patch patch_for(const nn_conv_geometry *geometry, const nn_view *in,
                              const nn_view *out) {
    patch p;
    p.in = in;
    p.groups = geometry->groups;
    p.inputs = in->channels / geometry->groups;
    p.outputs = out->channels / geometry->groups;
    p.kernel_h = geometry->kernel_h;
    p.kernel_w = geometry->kernel_w;
    p.dilation_h = geometry->dilation_h;
    p.dilation_w = geometry->dilation_w;
    p.joined = geometry->dilation_w == 1 && geometry->groups == 1 && nn_dense(in);
    p.size = geometry->kernel_h * geometry->kernel_w * p.inputs;
    return p;
}

void nn_conv2d_s8(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                  const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    patch p = patch_for(geometry, in, out);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * geometry->stride_h - geometry->pad_top;
        int8_t *row = nn_out_row(out, y);
        p.rows = nn_valid_taps(top, in->height, p.kernel_h, p.dilation_h);
        p.y = top + p.rows.first * p.dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * geometry->stride_w - geometry->pad_left;
            int8_t *pixel = row + nn_column(out, x) * out->pixel_stride;
            int clipped = p.rows.end - p.rows.first < p.kernel_h;
            p.columns = nn_valid_taps(left, in->width, p.kernel_w, p.dilation_w);
            p.x = left + p.columns.first * p.dilation_w;
            p.run = run_length(&p, p.x, p.columns.end - p.columns.first);
            clipped |= p.columns.end - p.columns.first < p.kernel_w;
            for (int32_t group = 0; group < p.groups; group++) {
                compute_group(&p, &block, group, clipped ? block.common.input_zero_point : 0,
                              pixel + group * p.outputs);
            }
        }
    }
}
