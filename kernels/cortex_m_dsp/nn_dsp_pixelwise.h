/* Operators that compute each output element from the elements at its place: runs of them. */
#ifndef NN_DSP_PIXELWISE_H
#define NN_DSP_PIXELWISE_H

#include "nn_dsp.h"

/* A product as nn_requantise rounds it, doubled value in, and with an offset added: see
 * nn_dsp_channel. */
typedef struct {
    int32_t multiplier, offset, shift;
} nn_dsp_factor;

static inline int32_t nn_dsp_scale(int32_t twice, const nn_dsp_factor *f) {
    return (nn_smmlar(twice, f->multiplier, f->offset) + (twice >> 31)) >> f->shift;
}

/* Sets `f` up; 0 if `multiplier` and `shift` are none that it can stand for. The values that will
 * be doubled are below 2^28. */
static inline int nn_dsp_find_factor(nn_dsp_factor *f, int32_t multiplier, int32_t shift,
                                     int32_t zero_point) {
    f->multiplier = multiplier;
    f->shift = -shift;
    if (multiplier < 0 || shift > -1 || shift < -22) {
        return 0;
    }
    f->offset = (1 << (-shift - 1)) + zero_point * (1 << -shift);
    return 1;
}

/* Elements that lie one behind the other in both operands and in the output. */
typedef void nn_dsp_run_of_two(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count);

/* Calls `compute` for runs that cover the window; all views have the output's channels. A run is
 * one pixel where something lies between the pixels of a view. */
static inline void nn_dsp_for_runs(nn_dsp_run_of_two *compute, const void *plan, const nn_view *in1,
                                   const nn_view *in2, const nn_view *out,
                                   const nn_window *window) {
    const int32_t channels = out->channels;
    const int dense = nn_one_column(window) || (nn_dense(in1) && nn_dense(in2) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t run;
        for (int32_t x = window->x0; x < window->x1; x += run) {
            run = dense ? window->x1 - x : 1;
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, run)));
            compute(plan, nn_pixel(in1, y, x), nn_pixel(in2, y, x), nn_out_pixel(out, y, x),
                    run * channels);
        }
    }
}

/* Calls `compute` for each pixel of the window: the second operand has one element a pixel. */
static inline void nn_dsp_for_pixels(nn_dsp_run_of_two *compute, const void *plan,
                                     const nn_view *in1, const nn_view *in2, const nn_view *out,
                                     const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            compute(plan, nn_pixel(in1, y, x), nn_pixel(in2, y, x), nn_out_pixel(out, y, x),
                    out->channels);
        }
    }
}

#endif
