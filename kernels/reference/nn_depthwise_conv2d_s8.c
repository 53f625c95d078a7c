/* DEPTHWISE_CONV_2D: four channels at a time, tap by tap. */
#include "nn_arith.h"

/* What the taps of one output pixel meet. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x;    /* of the first tap that meets the input */
    int32_t outputs; /* channels; also the weights of a tap */
} patch;

/* Sums of channels [c, c + 4) over the taps that meet the input; depth multiplier 1. */
static inline void sum_inside4(int32_t sums[4], const patch *p, const int8_t *weights, int32_t c) {
    const nn_conv_geometry *g = p->geometry;
    const int32_t outputs = p->outputs, step = g->dilation_w;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += g->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + c;
        const int8_t *w = weights + (ky * g->kernel_w + p->columns.first) * outputs + c;
        int32_t left = p->columns.end - p->columns.first, x = p->x;
        while (left > 0) {
            /* The first of the remaining taps that is beyond the column window's end. */
            int32_t run = (nn_run(p->in, x, p->in->ring_cols) + step - 1) / step;
            const int8_t *v = row + nn_column(p->in, x) * outputs;
            run = nn_min(run, left);
            left -= run;
            x += run * step;
            for (; run > 0; run--, v += step * outputs, w += outputs) {
                s0 += v[0] * w[0];
                s1 += v[1] * w[1];
                s2 += v[2] * w[2];
                s3 += v[3] * w[3];
            }
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* Output channel c's sum over the taps that meet the input; any depth multiplier. */
static int32_t sum_inside(const patch *p, const int8_t *weights, int32_t c) {
    const nn_conv_geometry *g = p->geometry;
    int32_t sum = 0, y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += g->dilation_h) {
        const int8_t *row = nn_row(p->in, y) + c / g->groups;
        const int8_t *w = weights + (ky * g->kernel_w + p->columns.first) * p->outputs + c;
        int32_t x = p->x;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++, x += g->dilation_w) {
            sum += row[nn_column(p->in, x) * p->in->channels] * *w;
            w += p->outputs;
        }
    }
    return sum;
}

/* The sum of output channel c's weights that meet padding. */
static int32_t sum_outside(const patch *p, const int8_t *weights, int32_t c) {
    const nn_conv_geometry *g = p->geometry;
    const int8_t *w = weights + c;
    int32_t sum = 0;
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        const int row_inside = ky >= p->rows.first && ky < p->rows.end;
        for (int32_t kx = 0; kx < g->kernel_w; kx++, w += p->outputs) {
            if (!row_inside || kx < p->columns.first || kx >= p->columns.end) {
                sum += *w;
            }
        }
    }
    return sum;
}

/* All channels of one output pixel. */
static inline void compute_pixel(const patch *p, const nn_conv_block *block, int8_t *out) {
    const nn_conv_geometry *g = p->geometry;
    const int clipped = p->rows.end - p->rows.first < g->kernel_h ||
                        p->columns.end - p->columns.first < g->kernel_w;
    const int32_t border = clipped ? block->common->input_zero_point : 0;
    int32_t c = 0;
    for (; g->groups == 1 && c + 4 <= p->outputs; c += 4) {
        int32_t sums[4];
        sum_inside4(sums, p, block->weights, c);
        for (int32_t i = 0; i < 4; i++) {
            if (border != 0) {
                sums[i] += border * sum_outside(p, block->weights, c + i);
            }
            out[c + i] = nn_conv_output(sums[i], block->channels + c + i, block->common);
        }
    }
    for (; c < p->outputs; c++) {
        int32_t sum = sum_inside(p, block->weights, c);
        if (border != 0) {
            sum += border * sum_outside(p, block->weights, c);
        }
        out[c] = nn_conv_output(sum, block->channels + c, block->common);
    }
}

void nn_depthwise_conv2d_s8(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    patch p;
    (void)scratch;
    p.geometry = geometry;
    p.in = in;
    p.outputs = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * geometry->stride_h - geometry->pad_top;
        int8_t *row = nn_row(out, y);
        p.rows = nn_valid_taps(top, in->height, geometry->kernel_h, geometry->dilation_h);
        p.y = top + p.rows.first * geometry->dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * geometry->stride_w - geometry->pad_left;
            p.columns = nn_valid_taps(left, in->width, geometry->kernel_w, geometry->dilation_w);
            p.x = left + p.columns.first * geometry->dilation_w;
            compute_pixel(&p, &block, row + nn_column(out, x) * out->channels);
        }
    }
}
