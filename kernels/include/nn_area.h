/* Poolings: how the windows of output pixels are walked; what lies outside the tensor does not
 * count. */
#ifndef NN_AREA_H
#define NN_AREA_H

#include "nn_arith.h"

/* The part of a pixel's window that lies in the tensor: rows and columns from (y, x) on. */
typedef struct {
    const nn_view *in;
    int32_t y, x, rows, columns;
} nn_area;

/* Computes all channels of the output pixel at `out`. */
typedef void nn_pool_pixel(const nn_area *area, const nn_pool_constants *constants, int8_t *out);

/* Has all pixels of a window computed. */
static inline __attribute__((always_inline)) void
nn_for_areas(nn_pool_pixel *compute, const nn_pool_geometry *g, const void *constants,
             const nn_view *in, const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        int8_t *const out_row = nn_out_row(out, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const nn_area area = {in, top + rows.first, left + columns.first, rows.end - rows.first,
                                  columns.end - columns.first};
            compute(&area, (const nn_pool_constants *)constants,
                    out_row + nn_column(out, x) * out->pixel_stride);
        }
    }
}

/* The pixels of a row from `first` on whose windows lie inside the tensor, if their channels lie
 * one behind the other in both tensors, with a stride of 1: such pixels are like one that has all
 * their channels. `bytes`: of an element. */
static inline int32_t nn_joined_pixels(const nn_pool_geometry *g, int32_t bytes, const nn_view *in,
                                       const nn_view *out, int32_t first, int32_t end) {
    const int32_t pixel = bytes * in->channels, left = first - g->pad_left;
    const int32_t pixels = nn_min(end - first, in->width - g->kernel_w + 1 - left);
    const int32_t span = pixels + g->kernel_w - 1;
    const int joined = g->stride_w == 1 && in->pixel_stride == pixel &&
                       out->pixel_stride == pixel && pixels > 1 && nn_run(in, left, span) == span &&
                       nn_run(out, first, pixels) == pixels;
    return joined ? pixels : 1;
}

/* Computes `channels`: of the pixel at `out`, and of those that are joined to it. */
typedef void nn_pool_joined(const nn_area *area, int32_t channels,
                            const nn_pool_constants *constants, int8_t *out);

/* As nn_for_areas, but joins pixels. */
static inline __attribute__((always_inline)) void
nn_for_joined_areas(nn_pool_joined *compute, int32_t bytes, const nn_pool_geometry *g,
                    const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window) {
    const int32_t first = nn_max(window->x0, g->pad_left);
    const int32_t pixels = nn_joined_pixels(g, bytes, in, out, first, window->x1);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        int8_t *const out_row = nn_out_row(out, y);
        for (int32_t x = window->x0, next; x < window->x1; x = next) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            next = x == first ? x + pixels : x + 1;
            const nn_area area = {in, top + rows.first, left + columns.first, rows.end - rows.first,
                                  columns.end - columns.first};
            compute(&area, (next - x) * in->channels, (const nn_pool_constants *)constants,
                    out_row + nn_column(out, x) * out->pixel_stride);
        }
    }
}

/* Halves away from zero. */
static inline int32_t nn_divide(int32_t sum, int32_t count) {
    const int32_t half = count / 2;
    return (sum > 0 ? sum + half : sum - half) / count;
}

#endif
