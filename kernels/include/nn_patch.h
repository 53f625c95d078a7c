/* How a convolution's pixels are walked in tiles: where the taps of a few pixels side by side lie.
 *
 * Where a tile's taps all meet the input and lie in memory as they lie in the tensor, they are read
 * in place, a run of bytes a kernel row. Otherwise they are collected in a patch: all taps of the
 * first pixel, then of the next.
 */
#ifndef NN_PATCH_H
#define NN_PATCH_H

#include "nn_conv.h"

#if defined(__riscv_vector)
#include <riscv_vector.h>
#endif

/* The taps of a tile's pixels: `count` runs of `bytes`. */
typedef struct {
    const int8_t *first; /* of the first pixel */
    int32_t count, bytes;
    int32_t step;      /* from pixel to pixel */
    int32_t out_step;  /* the same of the output */
    int32_t row_step;  /* from run to run, in a ring */
    const int8_t *end; /* of the ring, */
    int32_t ring;      /* and its bytes */
} nn_runs;

static inline const int8_t *nn_next_run(const nn_runs *runs, const int8_t *run) {
    run += runs->row_step;
    return run >= runs->end ? run - runs->ring : run;
}

/* What computes all output channels of a tile. A kernel has one for each number of pixels from 1
 * on: tiles[pixels - 1]. */
typedef void nn_tile(const void *constants, const nn_runs *runs, int8_t *out, int32_t channels);

/* One row of output. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows;       /* that meet the input, */
    const int8_t *data; /* and the first of them */
    int32_t row_step, row_bytes;
    int32_t zero_point;
    int32_t step;      /* from a pixel's taps to its neighbour's */
    int32_t out_step;  /* from pixel to pixel of the output */
    int32_t ring;      /* bytes of the input's ring of rows, */
    const int8_t *end; /* and where it ends */
    int joined;        /* the taps of a row lie one behind the other */
} nn_patch_row;

#if defined(__riscv_vector)
static inline void nn_patch_copy(int8_t *to, const int8_t *from, int32_t bytes) {
    for (size_t vl; bytes > 0; bytes -= (int32_t)vl, to += vl, from += vl) {
        vl = __riscv_vsetvl_e8m8((size_t)bytes);
        __riscv_vse8(to, __riscv_vle8_v_i8m8(from, vl), vl);
    }
}

static inline void nn_patch_fill(int8_t *to, int32_t value, int32_t bytes) {
    for (size_t vl; bytes > 0; bytes -= (int32_t)vl, to += vl) {
        vl = __riscv_vsetvl_e8m8((size_t)bytes);
        __riscv_vse8(to, __riscv_vmv_v_x_i8m8((int8_t)value, vl), vl);
    }
}
#else
static inline void nn_patch_copy(int8_t *to, const int8_t *from, int32_t bytes) {
    if ((((uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes) & 3) == 0) {
        uint32_t *d = (uint32_t *)(void *)to;
        const uint32_t *s = (const uint32_t *)(const void *)from;
        for (; bytes > 0; bytes -= 4) {
            *d++ = *s++;
            NN_BARRIER(); /* or it would become a call */
        }
        return;
    }
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4) {
        const int8_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        NN_BARRIER();
    }
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
        NN_BARRIER();
    }
}

static inline void nn_patch_fill(int8_t *to, int32_t value, int32_t bytes) {
    for (; bytes > 0; bytes--) {
        *to++ = (int8_t)value;
        NN_BARRIER();
    }
}
#endif

/* One row of a pixel's taps, from column `left` of the tensor on, some of which may be padding. */
NN_OUTLINE void nn_patch_edge(const nn_patch_row *r, int8_t *to, const int8_t *row, int32_t left) {
    const nn_conv_geometry *g = r->geometry;
    const nn_view *in = r->in;
    const int32_t channels = in->channels;
    int32_t x = left;
    for (int32_t k = 0; k < g->kernel_w; k++, x += g->dilation_w, to += channels) {
        if (x < 0 || x >= in->width) {
            nn_patch_fill(to, r->zero_point, channels);
        } else {
            nn_patch_copy(to, row + nn_column(in, x) * in->pixel_stride, channels);
        }
    }
}

/* All taps of a pixel, the first of which is at column `left` of the tensor. */
NN_OUTLINE void nn_patch_pixel(const nn_patch_row *r, int8_t *to, int32_t left) {
    const nn_conv_geometry *g = r->geometry;
    const nn_view *in = r->in;
    const int32_t channels = in->channels, span = (g->kernel_w - 1) * g->dilation_w + 1;
    const int32_t tap = g->dilation_w * in->pixel_stride;
    const int8_t *row = r->data;
    const int inside = left >= 0 && left + span <= in->width && nn_run(in, left, span) == span;
    const int joined = inside && r->joined;
    const int32_t column = inside ? nn_column(in, left) * in->pixel_stride : 0;
    for (int32_t k = 0; k < g->kernel_h; k++, to += r->row_bytes) {
        if (k < r->rows.first || k >= r->rows.end) {
            nn_patch_fill(to, r->zero_point, r->row_bytes);
            continue;
        }
        if (joined) {
            nn_patch_copy(to, row + column, r->row_bytes);
        } else if (inside) {
            const int8_t *from = row + column;
            for (int32_t i = 0; i < r->row_bytes; i += channels, from += tap) {
                nn_patch_copy(to + i, from, channels);
            }
        } else {
            nn_patch_edge(r, to, row, left);
        }
        row += r->row_step;
        row = row >= r->end ? row - r->ring : row;
    }
}

/* The taps of `pixels`, in place or in `patch`. `shortest`: run that is worth reading in place. */
static inline nn_runs nn_patch_runs(const nn_patch_row *r, int8_t *patch, int32_t pixels,
                                    int32_t left, int32_t shortest) {
    const nn_conv_geometry *g = r->geometry;
    const nn_view *in = r->in;
    const int32_t span = (pixels - 1) * g->stride_w + g->kernel_w;
    nn_runs runs;
    runs.out_step = r->out_step;
    if (r->rows.end - r->rows.first == g->kernel_h && r->joined && left >= 0 &&
        left + span <= in->width && r->row_bytes >= shortest && nn_run(in, left, span) == span) {
        runs.first = r->data + nn_column(in, left) * in->pixel_stride;
        runs.count = g->kernel_h;
        runs.bytes = r->row_bytes;
        runs.step = r->step;
        runs.row_step = r->row_step;
        runs.ring = r->ring;
        runs.end = r->end;
        return runs;
    }
    runs.first = patch;
    runs.count = 1;
    runs.bytes = g->kernel_h * r->row_bytes;
    runs.step = runs.bytes;
    runs.row_step = runs.ring = 0;
    runs.end = patch + pixels * runs.bytes;
    for (int32_t p = 0; p < pixels; p++, patch += runs.bytes, left += g->stride_w) {
        nn_patch_pixel(r, patch, left);
    }
    return runs;
}

/* Rows y from the window's on that make one run of pixels in a view. */
static inline int32_t nn_joined_rows(const nn_view *view, const nn_window *window, int32_t y) {
    const int whole = window->x0 == 0 && window->x1 == view->width && view->x0 == 0 &&
                      view->ring_cols == view->width &&
                      view->row_stride == view->width * view->pixel_stride;
    return whole ? nn_min(view->ring_rows - y % view->ring_rows, window->y1 - y) : 1;
}

/* Whether two views share no memory. */
static inline int nn_apart(const nn_view *a, const nn_view *b) {
    const uintptr_t first = (uintptr_t)a->data, second = (uintptr_t)b->data;
    return first + (uintptr_t)(a->ring_rows * a->row_stride) <= second ||
           second + (uintptr_t)(b->ring_rows * b->row_stride) <= first;
}

/* Whether no tile of `most` pixels writes over inputs that it or a later one reads, where `pixels`
 * lie one behind the other in both tensors. What is true of the first tile and of the last is true
 * of those between. */
static inline int nn_behind(const nn_view *in, const int8_t *from, const nn_view *out,
                            const int8_t *to, int32_t pixels, int32_t most) {
    const uintptr_t first = (uintptr_t)from,
                    last = first + (uintptr_t)((pixels - most) * in->pixel_stride);
    return (uintptr_t)to + (uintptr_t)(most * out->pixel_stride) <= first &&
           (uintptr_t)to + (uintptr_t)(pixels * out->pixel_stride) <= last;
}

/* A kernel of 1 x 1, stride 1, no padding: rows that lie one behind the other are one row, unless
 * the output lies over earlier rows of the input so closely that a tile of two rows would write the
 * second while it still reads the first. */
static inline void nn_patch_1x1(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, nn_tile *const *tiles, int32_t most) {
    const int apart = nn_apart(in, out);
    const int32_t in_step = in->pixel_stride, out_step = out->pixel_stride;
    for (int32_t y = window->y0; y < window->y1;) {
        int32_t rows = nn_min(nn_joined_rows(in, window, y), nn_joined_rows(out, window, y));
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t run = nn_run(in, x, nn_run(out, x, window->x1 - x));
            const int8_t *from = nn_pixel(in, y, x);
            int8_t *to = nn_out_pixel(out, y, x);
            if (!apart && !nn_behind(in, from, out, to, run * rows, most)) {
                rows = 1;
            }
            for (int32_t left = run * rows; left > 0;) {
                const int32_t pixels = nn_min(left, most);
                const nn_runs runs = {from, 1, in->channels, in_step, out_step, 0, from + 1, 0};
                tiles[pixels - 1](constants, &runs, to, out->channels);
                from += pixels * in_step;
                to += pixels * out_step;
                left -= pixels;
            }
            x += run;
        }
        y += rows;
    }
}

/* Whether each pixel of output comes from the pixel of input at its place. */
static inline int nn_patch_is_1x1(const nn_conv_geometry *g, const nn_view *in,
                                  const nn_view *out) {
    return g->kernel_h == 1 && g->kernel_w == 1 && g->stride_h == 1 && g->stride_w == 1 &&
           g->pad_top == 0 && g->pad_left == 0 && out->height <= in->height &&
           out->width <= in->width;
}

/* Bytes of patch that tiles of at most `most` pixels need. */
static inline int32_t nn_patch_bytes(const nn_conv_geometry *g, const nn_view *in,
                                     const nn_view *out, int32_t most) {
    return nn_patch_is_1x1(g, in, out) ? 0 : most * g->kernel_h * g->kernel_w * in->channels;
}

/* Any convolution of one group, in tiles of at most `most` pixels; `patch` has room for as many. */
static inline void nn_patch_walk(const nn_conv_geometry *g, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 int8_t *patch, nn_tile *const *tiles, int32_t most,
                                 int32_t shortest) {
    nn_patch_row r;
    if (nn_patch_is_1x1(g, in, out)) {
        nn_patch_1x1(constants, in, out, window, tiles, most);
        return;
    }
    r.geometry = g;
    r.in = in;
    r.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    r.step = g->stride_w * in->pixel_stride;
    r.ring = in->ring_rows * in->row_stride;
    r.end = in->data + r.ring;
    r.row_bytes = g->kernel_w * in->channels;
    r.out_step = out->pixel_stride;
    r.joined = g->kernel_w == 1 || (g->dilation_w == 1 && nn_dense(in));
    r.zero_point = ((const nn_conv_constants *)constants)->input_zero_point;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        r.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        r.data = in->data;
        if (r.rows.first < r.rows.end) {
            r.data = nn_row(in, top + r.rows.first * g->dilation_h);
        }
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t pixels = nn_run(out, x, nn_min(window->x1 - x, most));
            const nn_runs runs =
                nn_patch_runs(&r, patch, pixels, x * g->stride_w - g->pad_left, shortest);
            tiles[pixels - 1](constants, &runs, nn_out_pixel(out, y, x), out->channels);
            x += pixels;
        }
    }
}

#endif
