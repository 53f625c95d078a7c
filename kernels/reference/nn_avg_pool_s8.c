/* AVERAGE_POOL_2D: what lies outside the tensor does not count. */
#include "nn_arith.h"

/* The part of a pixel's window that lies in the tensor: rows and columns from (y, x) on. */
typedef struct {
    int32_t y, x, rows, columns;
} area;

/* Halves away from zero. */
static inline int32_t divide(int32_t sum, int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* The sums of `count` channels, at most 4, from channel c on. */
static inline void reduce(int32_t sums[4], const nn_view *in, const area *window, int32_t c,
                          int32_t count) {
    const int32_t channels = in->channels;
    for (int32_t i = 0; i < count; i++) {
        sums[i] = 0;
    }
    for (int32_t row = 0; row < window->rows; row++) {
        const int8_t *line = nn_row(in, window->y + row) + c;
        int32_t x = window->x, left = window->columns;
        while (left > 0) {
            const int8_t *value = line + nn_column(in, x) * channels;
            int32_t run = nn_run(in, x, left);
            left -= run;
            x += run;
            for (; run > 0; run--, value += channels) {
                for (int32_t i = 0; i < count; i++) {
                    sums[i] += value[i];
                }
            }
        }
    }
}

/* All channels of one output pixel. */
static void compute_pixel(const nn_view *in, const area *window, const nn_pool_constants *constants,
                          int8_t *out, int32_t channels) {
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int32_t elements = window->rows * window->columns;
    int32_t sums[4], c = 0;
    for (; c + 4 <= channels; c += 4) {
        reduce(sums, in, window, c, 4);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = (int8_t)nn_clamp(divide(sums[i], elements), low, high);
        }
    }
    for (; c < channels; c++) {
        reduce(sums, in, window, c, 1);
        out[c] = (int8_t)nn_clamp(divide(sums[0], elements), low, high);
    }
}

void nn_avg_pool_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const area inside = {top + rows.first, left + columns.first, rows.end - rows.first,
                                 columns.end - columns.first};
            compute_pixel(in, &inside, (const nn_pool_constants *)constants, nn_pixel(out, y, x),
                          out->channels);
        }
    }
}
