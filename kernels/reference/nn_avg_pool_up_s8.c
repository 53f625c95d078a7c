/* AVERAGE_POOL_2D as LiteRT's uint8 kernel computes it: halves are rounded up. */
#include "nn_area.h"
#include "nn_uint8.h"

/* The sums of `count` channels, at most 4, from channel c on. */
static inline void reduce(int32_t sums[4], const nn_area *window, int32_t c, int32_t count) {
    const nn_view *in = window->in;
    const int32_t step = in->pixel_stride;
    for (int32_t i = 0; i < count; i++) {
        sums[i] = 0;
    }
    for (int32_t row = 0; row < window->rows; row++) {
        const int8_t *line = nn_row(in, window->y + row) + c;
        int32_t x = window->x, left = window->columns;
        while (left > 0) {
            const int8_t *value = line + nn_column(in, x) * step;
            int32_t run = nn_run(in, x, left);
            left -= run;
            x += run;
            for (; run > 0; run--, value += step) {
                for (int32_t i = 0; i < count; i++) {
                    sums[i] += value[i];
                }
            }
        }
    }
}

/* All channels of one output pixel. */
static void compute_pixel(const nn_area *window, const nn_pool_constants *constants, int8_t *out) {
    const int32_t channels = window->in->channels;
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int32_t elements = window->rows * window->columns;
    int32_t sums[4], c = 0;
    for (; c + 4 <= channels; c += 4) {
        reduce(sums, window, c, 4);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = (int8_t)nn_clamp(nn_divide_up(sums[i], elements), low, high);
        }
    }
    for (; c < channels; c++) {
        reduce(sums, window, c, 1);
        out[c] = (int8_t)nn_clamp(nn_divide_up(sums[0], elements), low, high);
    }
}

void nn_avg_pool_up_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window) {
    nn_for_areas(compute_pixel, geometry, constants, in, out, window);
}
