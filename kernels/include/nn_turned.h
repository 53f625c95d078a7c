/* Images of one column as images of one row: rows and columns change places. */
#ifndef NN_TURNED_H
#define NN_TURNED_H

#include "nn_arith.h"

/* The only column of a view as its only row. */
static inline nn_view nn_turned(const nn_view *view) {
    const nn_view row = {view->data,    0, view->row_stride, 1, view->ring_rows, 0, 1, view->height,
                         view->channels};
    return row;
}

/* A kernel of one column as one of one row. */
static inline nn_conv_geometry nn_turned_geometry(const nn_conv_geometry *g) {
    const nn_conv_geometry row = {g->kernel_w, g->kernel_h,   g->stride_w,
                                  g->stride_h, g->dilation_w, g->dilation_h,
                                  g->pad_left, g->pad_top,    g->groups};
    return row;
}

static inline nn_window nn_turned_window(const nn_window *window) {
    const nn_window row = {window->x0, window->x1, window->y0, window->y1};
    return row;
}

#endif
