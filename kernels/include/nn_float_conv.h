/* Sums of convolutions of float32: rows, columns and channels of a filter in order. Padding adds
 * nothing. */
#ifndef NN_FLOAT_CONV_H
#define NN_FLOAT_CONV_H

#include "nn_float.h"

/* The taps of one output pixel that meet the input. */
typedef struct {
    nn_taps rows, columns;
    int32_t y, x; /* of the first tap, wherever it lies */
} nn_float_patch;

static inline nn_float_patch nn_float_patch_at(const nn_conv_geometry *g, const nn_view *in,
                                               int32_t y, int32_t x) {
    nn_float_patch p;
    p.y = y * g->stride_h - g->pad_top;
    p.x = x * g->stride_w - g->pad_left;
    p.rows = nn_valid_taps(p.y, in->height, g->kernel_h, g->dilation_h);
    p.columns = nn_valid_taps(p.x, in->width, g->kernel_w, g->dilation_w);
    return p;
}

/* The sum of one output channel over `inputs` channels from `first` on; `step`: weights from
 * column to column of the filter. */
static inline float nn_float_sum_up(const nn_conv_geometry *g, const nn_view *in,
                                    const nn_float_patch *p, int32_t first, int32_t inputs,
                                    const float *weights, int32_t step) {
    float sum = 0.0F;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++) {
            const float *x = nn_float_in(in, p->y + ky * g->dilation_h, p->x + kx * g->dilation_w);
            const float *w = weights + (ky * g->kernel_w + kx) * step;
            for (int32_t i = 0; i < inputs; i++) {
                sum += x[first + i] * w[i];
                NN_ONE_BY_ONE();
            }
        }
    }
    return sum;
}

#endif
