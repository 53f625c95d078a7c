/* Operators that compute each output element from the elements at its place: runs of them. */
#ifndef NN_PIXELWISE_H
#define NN_PIXELWISE_H

#include "nn_arith.h"

/* Computes `count` elements that lie one after the other in both operands and in the output; of an
 * operand with one channel they are all the same. */
typedef void nn_run_of_two(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                           int32_t count);

/* Whether a window's elements lie one after the other in the view, `pixel` bytes each. */
static inline int nn_is_block(const nn_view *view, int32_t pixel, const nn_window *window) {
    const int32_t columns = window->x1 - window->x0, rows = window->y1 - window->y0;
    return view->pixel_stride == pixel && view->ring_cols == columns && view->x0 == window->x0 &&
           view->row_stride == columns * pixel &&
           window->y0 % view->ring_rows + rows <= view->ring_rows;
}

/* Calls `compute` for runs that cover the window. A run is one pixel where something lies between
 * the pixels of a view, or an operand has one channel while the output has more. Elements have
 * `bytes` bytes; `blocks`: runs are of several rows where they can be. */
static inline __attribute__((always_inline)) void
nn_for_runs_of(const int32_t bytes, const int blocks, nn_run_of_two *compute, const void *plan,
               const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window) {
    const int32_t pixel = bytes * out->channels;
    const int alike = in1->channels == out->channels && in2->channels == out->channels;
    const int dense =
        nn_one_column(window) || (alike && in1->pixel_stride == pixel &&
                                  in2->pixel_stride == pixel && out->pixel_stride == pixel);
    const int whole = blocks && alike && nn_is_block(in1, pixel, window) &&
                      nn_is_block(in2, pixel, window) && nn_is_block(out, pixel, window);
    if (whole) {
        compute(plan, nn_row(in1, window->y0), nn_row(in2, window->y0), nn_out_row(out, window->y0),
                (window->y1 - window->y0) * (window->x1 - window->x0) * out->channels);
        return;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            run = dense ? window->x1 - x : 1;
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, run)));
            compute(plan, nn_pixel(in1, y, x), nn_pixel(in2, y, x), nn_out_pixel(out, y, x),
                    run * out->channels);
        }
    }
}

static inline __attribute__((always_inline)) void
nn_for_runs(nn_run_of_two *compute, const void *plan, const nn_view *in1, const nn_view *in2,
            const nn_view *out, const nn_window *window) {
    nn_for_runs_of(1, 0, compute, plan, in1, in2, out, window);
}

/* The same in as few runs as there can be. */
static inline __attribute__((always_inline)) void
nn_for_blocks(const int32_t bytes, nn_run_of_two *compute, const void *plan, const nn_view *in1,
              const nn_view *in2, const nn_view *out, const nn_window *window) {
    nn_for_runs_of(bytes, 1, compute, plan, in1, in2, out, window);
}

#endif
