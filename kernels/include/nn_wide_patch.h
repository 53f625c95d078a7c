/* The walk of an int16 convolution over its outputs: what the taps of each output pixel meet. Those
 * that meet padding are left out, since they add nothing. */
#ifndef NN_WIDE_PATCH_H
#define NN_WIDE_PATCH_H

#include "nn_wide.h"

/* The taps of an output pixel that meet the input. */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x; /* of the first of them */
    int32_t kernel_w, dilation_h, dilation_w;
} nn_wide_patch;

static inline nn_wide_patch nn_wide_patches(const nn_conv_geometry *g, const nn_view *in) {
    nn_wide_patch p;
    p.in = in;
    p.kernel_w = g->kernel_w;
    p.dilation_h = g->dilation_h;
    p.dilation_w = g->dilation_w;
    return p;
}

/* Sets the rows of output row y, and the columns of output column x. */
static inline void nn_wide_at_row(nn_wide_patch *p, const nn_conv_geometry *g, int32_t y) {
    const int32_t top = y * g->stride_h - g->pad_top;
    p->rows = nn_valid_taps(top, p->in->height, g->kernel_h, g->dilation_h);
    p->y = top + p->rows.first * g->dilation_h;
}

static inline void nn_wide_at_column(nn_wide_patch *p, const nn_conv_geometry *g, int32_t x) {
    const int32_t left = x * g->stride_w - g->pad_left;
    p->columns = nn_valid_taps(left, p->in->width, g->kernel_w, g->dilation_w);
    p->x = left + p->columns.first * g->dilation_w;
}

/* A convolution's taps, and what its sums are made of. */
typedef struct {
    nn_wide_patch taps;
    int32_t inputs; /* channels of a group; also the weights of a tap */
    int32_t size;   /* weights of an output channel */
    int joined;     /* the inputs of neighbouring columns lie one after the other */
} nn_wide_conv;

static inline nn_wide_conv nn_wide_conv_of(const nn_conv_geometry *g, const nn_view *in,
                                           int32_t groups) {
    nn_wide_conv c;
    c.taps = nn_wide_patches(g, in);
    c.inputs = in->channels / groups;
    c.size = g->kernel_h * g->kernel_w * c.inputs;
    c.joined = g->dilation_w == 1 && groups == 1 && nn_wide_dense(in);
    return c;
}

#endif
