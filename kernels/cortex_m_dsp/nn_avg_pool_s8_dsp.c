/* AVERAGE_POOL_2D, four channels at a time where there are as many. */
#include "nn_area.h"
#include "nn_dsp_average.h"
#include "nn_dsp_pool.h"

#define MAX_SHORT 185 /* elements that can be divided by in 16 bits; tried with every sum */

/* ---- windows that a ring cuts, and those of more than MAX_SHORT elements ----------------------
 */

static void compute(const nn_dsp_area *area, int32_t c, int8_t *out) {
    const int32_t count = area->rows * area->columns;
    nn_dsp_sums s;
    nn_dsp_start_sums(&s);
    nn_dsp_walk(area, c, nn_dsp_add_words, &s);
    nn_dsp_move_halves(&s);
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        out[i] = (int8_t)nn_divide(s.sums[i], count);
    }
}

NN_OUTLINE void average_many(const nn_dsp_windows *windows, int32_t count) {
    for (int32_t i = 0; i < windows->pixels; i++) {
        const int8_t *const in = windows->data + i * windows->in_step;
        int8_t *const out = windows->out + i * windows->out_step;
        for (int32_t c = 0; c < windows->channels; c += NN_DSP_BLOCK) {
            const int32_t first = nn_min(c, windows->channels - NN_DSP_BLOCK);
            nn_dsp_sums s;
            nn_dsp_start_sums(&s);
            for (int32_t row = 0; row < windows->rows; row++) {
                nn_dsp_add_words(&s, in + first + row * windows->row_step, windows->step,
                                 windows->columns);
            }
            nn_dsp_move_halves(&s);
            for (int32_t k = 0; k < NN_DSP_BLOCK; k++) {
                out[first + k] = (int8_t)nn_divide(s.sums[k], count);
            }
        }
    }
}

/* ---- windows of two rows and columns ----------------------------------------------------------
 *
 * Sums of four, one in each half of a word, with 513 added: 512 keep them positive and make the
 * means larger by 128, and bit 9 is set from -1 on. (sum + 513 + bit 9) / 4, rounded down, is
 * (sum + 2) / 4 from -1 on and (sum + 1) / 4 below, which are halves away from zero. */
#define SQUARE_START 0x02010201U

static inline uint32_t divide_by_four(uint32_t sums) {
    return ((sums + ((sums >> 9) & 0x00010001U)) >> 2) & 0x00FF00FFU;
}

static inline uint32_t average_of_square(const int8_t *above, const int8_t *below, int32_t step) {
    const uint32_t a = nn_load4(above), b = nn_load4(above + step);
    const uint32_t c = nn_load4(below), d = nn_load4(below + step);
    uint32_t even = nn_sxtab16(SQUARE_START, a), odd = nn_sxtab16_ror8(SQUARE_START, a);
    even = nn_sxtab16(nn_sxtab16(nn_sxtab16(even, b), c), d);
    odd = nn_sxtab16_ror8(nn_sxtab16_ror8(nn_sxtab16_ror8(odd, b), c), d);
    return (divide_by_four(even) | divide_by_four(odd) << 8) ^ 0x80808080;
}

NN_OUTLINE void average_squares(const nn_dsp_windows *windows) {
    const nn_dsp_windows w = *windows;
    const int8_t *in = w.data;
    int8_t *out = w.out;
    for (int32_t i = w.pixels; i > 0; i--, in += w.in_step, out += w.out_step) {
        const int8_t *above = in, *below = in + w.row_step;
        int8_t *to = out, *const end = out + w.channels - NN_DSP_BLOCK;
#pragma GCC unroll 1
        for (; to < end; above += NN_DSP_BLOCK, below += NN_DSP_BLOCK, to += NN_DSP_BLOCK) {
            nn_store4(to, average_of_square(above, below, w.step));
        }
        const int32_t back = (int32_t)(to - end); /* the last block ends with the channels */
        nn_store4(end, average_of_square(above - back, below - back, w.step));
    }
}

/* ---- windows of up to MAX_SHORT elements ------------------------------------------------------
 */

/* The means of four channels of a window. `columns` is a constant where it is a small one. */
static inline __attribute__((always_inline)) uint32_t average_four(const nn_dsp_windows *w,
                                                                   const int8_t *from,
                                                                   int32_t columns,
                                                                   const nn_dsp_division *d) {
    uint32_t even = 0, odd = 0; /* channels 0 and 2, 1 and 3 */
    for (int32_t rows = w->rows; rows > 0; rows--, from += w->row_step) {
        const int8_t *pixel = from;
#pragma GCC unroll 4
        for (int32_t i = columns; i > 0; i--, pixel += w->step) {
            const uint32_t word = nn_load4(pixel);
            even = nn_sxtab16(even, word);
            odd = nn_sxtab16_ror8(odd, word);
        }
    }
    return nn_dsp_means(even, odd, d);
}

static inline __attribute__((always_inline)) void average(const nn_dsp_windows *windows,
                                                          int32_t columns, int32_t count) {
    const nn_dsp_windows w = *windows;
    const nn_dsp_division d = nn_dsp_divide_by(count);
    for (int32_t i = 0; i < w.pixels; i++) {
        const int8_t *const in = w.data + i * w.in_step;
        int8_t *const out = w.out + i * w.out_step;
        for (int32_t c = 0; c < w.channels; c += NN_DSP_BLOCK) {
            const int32_t first = nn_min(c, w.channels - NN_DSP_BLOCK);
            nn_store4(out + first, average_four(&w, in + first, columns, &d));
        }
    }
}

NN_OUTLINE void average_threes(const nn_dsp_windows *windows, int32_t count) {
    average(windows, 3, count);
}

NN_OUTLINE void average_few(const nn_dsp_windows *windows, int32_t count) {
    average(windows, windows->columns, count);
}

/* ---- all --------------------------------------------------------------------------------------
 */

static void compute_run(const nn_dsp_windows *windows) {
    const int32_t count = windows->rows * windows->columns;
    nn_dsp_windows w = *windows;
    if (w.rows == 2 && w.columns == 2) {
        average_squares(&w);
        return;
    }
    if (count == 1) { /* twice itself, by 2 */
        w.rows = 2;
        w.row_step = 0;
    } else if (w.columns * w.step == w.row_step) { /* one row follows the other */
        w.columns = count;
        w.rows = 1;
    }
    if (count > MAX_SHORT) {
        average_many(&w, count);
    } else if (w.columns == 3) {
        average_threes(&w, count);
    } else {
        average_few(&w, nn_max(count, 2));
    }
}

NN_OUTLINE void compute_narrow(const nn_dsp_windows *windows) {
    nn_dsp_narrow_windows(windows, compute_run, 0, nn_fold_sum, nn_divide, 1);
}

void nn_avg_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const int is_narrow = in->channels < NN_DSP_BLOCK;
    nn_dsp_pool(is_narrow ? compute_narrow : compute_run, is_narrow ? NULL : compute,
                nn_avg_pool_s8, geometry, (const nn_pool_constants *)constants, in, out, window, 1);
}
