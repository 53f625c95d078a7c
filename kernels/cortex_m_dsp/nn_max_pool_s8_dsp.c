/* MAX_POOL_2D, four channels at a time where there are as many. */
#include "nn_dsp_pool.h"

/* ---- windows that a ring cuts -----------------------------------------------------------------
 */

static inline void take(void *state, const int8_t *from, int32_t step, int32_t count) {
    uint32_t largest = *(uint32_t *)state;
    for (; count > 0; count--, from += step) {
        largest = nn_max8(nn_load4(from), largest);
    }
    *(uint32_t *)state = largest;
}

static void compute(const nn_dsp_area *area, int32_t c, int8_t *out) {
    uint32_t largest = nn_times4(-128);
    nn_dsp_walk(area, c, take, &largest);
    nn_store4(out, largest);
}

/* ---- windows that none cuts -------------------------------------------------------------------
 */

/* Four channels of a window of two rows and columns. */
static inline uint32_t largest_of_square(const int8_t *above, const int8_t *below, int32_t step) {
    const uint32_t left = nn_max8(nn_load4(above), nn_load4(below));
    return nn_max8(left, nn_max8(nn_load4(above + step), nn_load4(below + step)));
}

/* Four channels of any window. `columns` is a constant where it is a small one. */
static inline __attribute__((always_inline)) uint32_t largest_of_window(const nn_dsp_windows *w,
                                                                        const int8_t *from,
                                                                        int32_t columns) {
    uint32_t largest = nn_load4(from);
    for (int32_t rows = w->rows; rows > 0; rows--, from += w->row_step) {
        if (columns == 3) {
            largest = nn_max8(nn_load4(from), largest);
            largest = nn_max8(nn_load4(from + w->step), largest);
            largest = nn_max8(nn_load4(from + 2 * w->step), largest);
            continue;
        }
        const int8_t *pixel = from;
#pragma GCC unroll 4
        for (int32_t i = columns; i > 0; i--, pixel += w->step) {
            largest = nn_max8(nn_load4(pixel), largest);
        }
    }
    return largest;
}

NN_OUTLINE void largest_of_squares(const nn_dsp_windows *windows) {
    const nn_dsp_windows w = *windows;
    const int8_t *in = w.data;
    int8_t *out = w.out;
    for (int32_t i = w.pixels; i > 0; i--, in += w.in_step, out += w.out_step) {
        const int8_t *above = in, *below = in + w.row_step;
        int8_t *to = out, *const end = out + w.channels - NN_DSP_BLOCK;
#pragma GCC unroll 1
        for (; to < end; above += NN_DSP_BLOCK, below += NN_DSP_BLOCK, to += NN_DSP_BLOCK) {
            nn_store4(to, largest_of_square(above, below, w.step));
        }
        const int32_t back = (int32_t)(to - end); /* the last block ends with the channels */
        nn_store4(end, largest_of_square(above - back, below - back, w.step));
    }
}

static inline __attribute__((always_inline)) void largest_of(const nn_dsp_windows *windows,
                                                             int32_t columns) {
    const nn_dsp_windows w = *windows;
    for (int32_t i = 0; i < w.pixels; i++) {
        const int8_t *const in = w.data + i * w.in_step;
        int8_t *const out = w.out + i * w.out_step;
        for (int32_t c = 0; c < w.channels; c += NN_DSP_BLOCK) {
            const int32_t first = nn_min(c, w.channels - NN_DSP_BLOCK);
            nn_store4(out + first, largest_of_window(&w, in + first, columns));
        }
    }
}

NN_OUTLINE void largest_of_threes(const nn_dsp_windows *windows) {
    largest_of(windows, 3);
}

NN_OUTLINE void largest_of_any(const nn_dsp_windows *windows) {
    largest_of(windows, windows->columns);
}

static void compute_run(const nn_dsp_windows *windows) {
    if (windows->columns == 2 && windows->rows == 2) {
        largest_of_squares(windows);
    } else if (windows->columns == 3) {
        largest_of_threes(windows);
    } else {
        largest_of_any(windows);
    }
}

NN_OUTLINE void compute_narrow(const nn_dsp_windows *windows) {
    nn_dsp_narrow_windows(windows, compute_run, -128, nn_max, nn_fold_found, 1);
}

void nn_max_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const int is_narrow = in->channels < NN_DSP_BLOCK;
    nn_dsp_pool(is_narrow ? compute_narrow : compute_run, is_narrow ? NULL : compute,
                nn_max_pool_s8, geometry, (const nn_pool_constants *)constants, in, out, window, 1);
}
