/* Operators that compute each output element from the elements at its place: runs of them. */
#ifndef NN_PIXELWISE_H
#define NN_PIXELWISE_H

#include "nn_arith.h"

/* Computes `count` elements that lie one after the other in both operands and in the output; of an
 * operand with one channel they are all the same. */
typedef void nn_run_of_two(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                           int32_t count);

/* Calls `compute` for runs that cover the window. A run is one pixel where something lies between
 * the pixels of a view, or an operand has one channel while the output has more. */
static inline __attribute__((always_inline)) void
nn_for_runs(nn_run_of_two *compute, const void *plan, const nn_view *in1, const nn_view *in2,
            const nn_view *out, const nn_window *window) {
    const int alike = in1->channels == out->channels && in2->channels == out->channels;
    const int dense =
        nn_one_column(window) || (alike && nn_dense(in1) && nn_dense(in2) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            run = dense ? window->x1 - x : 1;
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, run)));
            compute(plan, nn_pixel(in1, y, x), nn_pixel(in2, y, x), nn_out_pixel(out, y, x),
                    run * out->channels);
        }
    }
}

#endif
