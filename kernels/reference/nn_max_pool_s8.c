/* MAX_POOL_2D: what lies outside the tensor does not count. */
#include "nn_arith.h"

/* The largest of `rows` by `columns` input elements from (y, x) on; channel c. */
static int32_t largest(const nn_view *in, int32_t y, int32_t rows, int32_t x, int32_t columns,
                       int32_t c) {
    int32_t found = -128;
    for (int32_t i = 0; i < rows; i++) {
        const int8_t *row = nn_row(in, y + i) + c;
        int32_t j = 0, run;
        for (; j < columns; j += run) {
            const int8_t *value = row + nn_column(in, x + j) * in->channels;
            run = nn_run(in, x + j, columns - j);
            for (int32_t k = 0; k < run; k++, value += in->channels) {
                found = nn_max(found, *value);
            }
        }
    }
    return found;
}

void nn_max_pool_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_pool_constants *constant = (const nn_pool_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            int8_t *result = nn_pixel(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                const int32_t value = largest(in, top + rows.first, rows.end - rows.first,
                                              left + columns.first, columns.end - columns.first, c);
                result[c] = (int8_t)nn_clamp(value, constant->clamp_min, constant->clamp_max);
            }
        }
    }
}
