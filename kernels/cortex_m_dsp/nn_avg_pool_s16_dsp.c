/* AVERAGE_POOL_2D on int16, two channels at a time. */
#include "nn_dsp_pool.h"

static inline int32_t low_half(uint32_t word) {
    return (int16_t)(uint16_t)word;
}

/* Two channels of a window. `columns` is a constant where it is a small one. */
static inline __attribute__((always_inline)) void average_two(const nn_dsp_windows *w,
                                                              const int8_t *from, int16_t *to,
                                                              int32_t columns, int32_t count) {
    int32_t first = 0, second = 0;
    int32_t rows = w->rows;
    do { /* a window has a row and a column at least */
        const int8_t *pixel = from;
        int32_t left = columns;
#pragma GCC unroll 2
        do {
            const uint32_t word = nn_load4(pixel);
            first += low_half(word);
            second += (int32_t)word >> 16;
            pixel += w->step;
        } while (--left > 0);
        from += w->row_step;
    } while (--rows > 0);
    to[0] = (int16_t)nn_divide(first, count);
    to[1] = (int16_t)nn_divide(second, count);
}

NN_OUTLINE void compute_run(const nn_dsp_windows *windows) {
    const nn_dsp_windows w = *windows;
    const int32_t count = w.rows * w.columns;
#pragma GCC unroll 1
    for (int32_t i = 0; i < w.pixels; i++) {
        const int8_t *const in = w.data + i * w.in_step;
        int16_t *const out = (int16_t *)(void *)(w.out + i * w.out_step);
#pragma GCC unroll 1
        for (int32_t c = 0; c < w.channels; c += 2) {
            const int32_t first =
                nn_min(c, w.channels - 2); /* the last two end with the channels */
            if (w.columns == 2) {
                average_two(&w, in + 2 * first, out + first, 2, count);
            } else {
                average_two(&w, in + 2 * first, out + first, w.columns, count);
            }
        }
    }
}

NN_OUTLINE void compute_narrow(const nn_dsp_windows *windows) {
    nn_dsp_narrow_windows(windows, compute_run, 0, nn_fold_sum, nn_divide, 2);
}

void nn_avg_pool_s16_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_dsp_pool(in->channels < 2 ? compute_narrow : compute_run, NULL, nn_avg_pool_s16, geometry,
                (const nn_pool_constants *)constants, in, out, window, 2);
}
