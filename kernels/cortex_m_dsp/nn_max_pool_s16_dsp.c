/* MAX_POOL_2D on int16, two channels at a time. */
#include "nn_dsp_pool.h"

/* Two channels of a window. */
static inline uint32_t largest_of_two(const nn_dsp_windows *w, const int8_t *from) {
    uint32_t largest = nn_load4(from);
    for (int32_t rows = w->rows; rows > 0; rows--, from += w->row_step) {
        const int8_t *pixel = from;
#pragma GCC unroll 2
        for (int32_t left = w->columns; left > 0; left--, pixel += w->step) {
            largest = nn_max16(nn_load4(pixel), largest);
        }
    }
    return largest;
}

NN_OUTLINE void compute_run(const nn_dsp_windows *windows) {
    const nn_dsp_windows w = *windows;
    for (int32_t i = 0; i < w.pixels; i++) {
        const int8_t *const in = w.data + i * w.in_step;
        int8_t *const out = w.out + i * w.out_step;
        for (int32_t c = 0; c < w.channels; c += 2) {
            const int32_t first = 2 * nn_min(c, w.channels - 2); /* the last two end with them */
            nn_store4(out + first, largest_of_two(&w, in + first));
        }
    }
}

NN_OUTLINE void compute_narrow(const nn_dsp_windows *windows) {
    nn_dsp_narrow_windows(windows, compute_run, -32768, nn_max, nn_fold_found, 2);
}

void nn_max_pool_s16_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_dsp_pool(in->channels < 2 ? compute_narrow : compute_run, NULL, nn_max_pool_s16, geometry,
                (const nn_pool_constants *)constants, in, out, window, 2);
}
