/* Depthwise convolutions in tiles of pixels side by side: which rows of taps an output row meets,
 * and where a tile's columns are. */
#ifndef NN_TILE_ROW_H
#define NN_TILE_ROW_H

#include "nn_arith.h"

#ifndef NN_TILE_REACH
#define NN_TILE_REACH 17 /* columns that a tile of six meets at most: stride 2, width 7 */
#endif

/* One row of output. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    int32_t above, rows, below;     /* rows of taps over padding, over the input, and again */
    const int8_t *data;             /* the first row of input that is met */
    int32_t row_step, ring;         /* from row to row of taps, and bytes of the ring of rows, */
    const int8_t *ring_end;         /* which ends here */
    int32_t offsets[NN_TILE_REACH]; /* of a tile's columns in a row; -1: padding */
} nn_tile_row;

/* What all rows share. */
static inline void nn_tile_open(nn_tile_row *r, const nn_conv_geometry *g, const nn_view *in) {
    r->geometry = g;
    r->in = in;
    r->row_step = g->dilation_h % in->ring_rows * in->row_stride;
    r->ring = in->ring_rows * in->row_stride;
    r->ring_end = in->data + r->ring;
}

/* Goes to output row y. */
static inline void nn_tile_seek(nn_tile_row *r, int32_t y) {
    const nn_conv_geometry *g = r->geometry;
    const int32_t top = y * g->stride_h - g->pad_top;
    const nn_taps rows = nn_valid_taps(top, r->in->height, g->kernel_h, g->dilation_h);
    r->above = rows.first;
    r->rows = rows.end - rows.first;
    r->below = g->kernel_h - rows.end;
    r->data = r->rows > 0 ? nn_row(r->in, top + rows.first * g->dilation_h) : r->in->data;
}

/* Notes where the columns from `left` on are, as far as `pixels` meet them. */
static inline void nn_tile_columns(nn_tile_row *r, int32_t left, int32_t pixels) {
    const int32_t reach = (pixels - 1) * r->geometry->stride_w + r->geometry->kernel_w;
    for (int32_t i = 0; i < NN_TILE_REACH; i++) {
        const int32_t x = left + i;
        const int meets = i < reach && x >= 0 && x < r->in->width;
        r->offsets[i] = meets ? nn_column(r->in, x) * r->in->pixel_stride : -1;
    }
}

/* Whether `reach` columns from `left` on lie in the tensor, one after the other. */
static inline int nn_tile_regular(const nn_view *in, int32_t left, int32_t reach) {
    return left >= 0 && left + reach <= in->width && nn_run(in, left, reach) == reach;
}

#endif
