/* How a convolution's pixels are walked in the tiles of nn_rvv_tile.h. */
#ifndef NN_RVV_ROWS_H
#define NN_RVV_ROWS_H

#include "nn_rvv_tile.h"

/* All channels of a tile, by how its columns lie and how many pixels it has; `words`: of a
 * channel's constants. */
typedef void nn_rvv_tile_function(const nn_rvv_tile *t, int8_t *out);
typedef struct {
    nn_rvv_tile_function *of[3][NN_RVV_PIXELS];
    int32_t words;
} nn_rvv_tiles;

/* Defines these functions and `tiles`. */
#define NN_RVV_TILE(name, pixels, kind, form)                                                      \
    NN_OUTLINE void name(const nn_rvv_tile *t, int8_t *out) {                                      \
        size_t vl;                                                                                 \
        for (int32_t c = 0; c < t->channels; c += (int32_t)vl) {                                   \
            const int32_t left = t->channels - c;                                                  \
            const int32_t some = form == NN_RVV_GATHER ? nn_min(left, t->most) : left;             \
            vl = __riscv_vsetvl_e32m4((size_t)some);                                               \
            nn_rvv_compute(t, out, c, pixels, kind, form, vl);                                     \
        }                                                                                          \
    }
#define NN_RVV_TILES(form)                                                                         \
    NN_RVV_TILE(inside1, 1, NN_RVV_INSIDE, form)                                                   \
    NN_RVV_TILE(inside2, 2, NN_RVV_INSIDE, form)                                                   \
    NN_RVV_TILE(inside3, 3, NN_RVV_INSIDE, form)                                                   \
    NN_RVV_TILE(inside4, 4, NN_RVV_INSIDE, form)                                                   \
    NN_RVV_TILE(edge1, 1, NN_RVV_EDGE, form)                                                       \
    NN_RVV_TILE(edge2, 2, NN_RVV_EDGE, form)                                                       \
    NN_RVV_TILE(edge3, 3, NN_RVV_EDGE, form)                                                       \
    NN_RVV_TILE(edge4, 4, NN_RVV_EDGE, form)                                                       \
    NN_RVV_TILE(ring1, 1, NN_RVV_RING, form)                                                       \
    NN_RVV_TILE(ring2, 2, NN_RVV_RING, form)                                                       \
    NN_RVV_TILE(ring3, 3, NN_RVV_RING, form)                                                       \
    NN_RVV_TILE(ring4, 4, NN_RVV_RING, form)                                                       \
    static const nn_rvv_tiles tiles = {{{inside1, inside2, inside3, inside4},                      \
                                        {edge1, edge2, edge3, edge4},                              \
                                        {ring1, ring2, ring3, ring4}},                             \
                                       form == NN_RVV_WIDE ? NN_RVV_WIDE_WORDS : 3};

static inline int32_t nn_rvv_common_divisor(int32_t a, int32_t b) {
    while (b != 0) {
        const int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How the columns of a tile lie that reach from `left` to `right`, and the tile's place. */
static inline int32_t nn_rvv_place(nn_rvv_tile *t, const nn_view *in, int32_t left, int32_t right) {
    const int32_t first = nn_max(left, 0), last = nn_min(right, in->width - 1);
    t->left = left;
    t->place = 0;
    if (first > last) { /* all padding */
        return NN_RVV_EDGE;
    }
    const int32_t column = nn_column(in, first);
    if (column + last - first >= in->ring_cols) {
        return NN_RVV_RING;
    }
    t->place = column * in->pixel_stride;
    if (first == left && last == right) {
        return NN_RVV_INSIDE;
    }
    t->place -= first * in->pixel_stride;
    return NN_RVV_EDGE;
}

/* Columns x, x + apart, ... below `end` of a row of output. */
static inline void nn_rvv_walk_columns(nn_rvv_tile *t, const nn_rvv_tiles *tiles,
                                       const nn_conv_geometry *g, const nn_view *in,
                                       const nn_view *out, int8_t *out_row, int32_t x, int32_t end,
                                       int32_t apart) {
    while (x < end) {
        const int32_t run = nn_run(out, x, nn_min(end - x, (NN_RVV_PIXELS - 1) * apart + 1));
        const int32_t pixels = apart == 1 ? run : (run - 1) / apart + 1;
        const int32_t left = x * g->stride_w - g->pad_left, taps = (g->kernel_w - 1) * t->dilation;
        const int32_t kind =
            nn_rvv_place(t, in, left, left + (pixels - 1) * apart * g->stride_w + taps);
        tiles->of[kind][pixels - 1](t, out_row + nn_column(out, x) * out->pixel_stride);
        x += pixels * apart;
    }
}

/* All pixels of a window. */
static inline void nn_rvv_walk(const nn_conv_geometry *g, const void *constants, const nn_view *in,
                               const nn_view *out, const nn_window *window,
                               const nn_rvv_tiles *tiles) {
    const int32_t common = nn_rvv_common_divisor(g->stride_w, g->dilation_w);
    const int32_t apart = g->dilation_w / common;
    nn_rvv_tile t;
    t.block = nn_rvv_open(constants, out->channels, tiles->words);
    t.channels = out->channels;
    t.inputs = t.block.head->inputs;
    t.outputs = out->channels / (in->channels / t.inputs);
    t.most = (int32_t)__riscv_vsetvlmax_e32m4();
    if (t.inputs > 1 || t.outputs > 1) {
        t.most = t.most / nn_max(t.inputs, t.outputs) * t.outputs;
    }
    t.kernel_h = g->kernel_h;
    t.kernel_w = g->kernel_w;
    t.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    t.row_ring = in->ring_rows * in->row_stride;
    t.row_end = in->data + t.row_ring;
    t.chains = g->stride_w / common;
    t.dilation = g->dilation_w;
    t.column_step = g->dilation_w * t.chains;
    t.pixel_step = in->pixel_stride;
    t.width = in->width;
    t.column_ring = in->ring_cols;
    t.x0 = in->x0;
    t.place = 0;
    t.out_step = apart * out->pixel_stride;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        t.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        t.data = in->data;
        if (t.rows.first < t.rows.end) {
            t.data = nn_row(in, top + t.rows.first * g->dilation_h);
        }
        for (int32_t x = window->x0; x < window->x1 && x < window->x0 + apart; x++) {
            nn_rvv_walk_columns(&t, tiles, g, in, out, nn_out_row(out, y), x, window->x1, apart);
        }
    }
}

#endif
