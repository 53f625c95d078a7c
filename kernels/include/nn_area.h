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

/* Halves away from zero. */
static inline int32_t nn_divide(int32_t sum, int32_t count) {
    const int32_t half = count / 2;
    return (sum > 0 ? sum + half : sum - half) / count;
}

#endif
