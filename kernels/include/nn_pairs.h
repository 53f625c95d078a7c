/* Operators that compute each output element from one element of two operands, with broadcasting.
 */
#ifndef NN_PAIRS_H
#define NN_PAIRS_H

#include "nn_arith.h"

/* One output element. */
typedef int8_t nn_of_two(const void *constants, int32_t a, int32_t b);

static inline __attribute__((always_inline)) void
nn_for_pairs(nn_of_two *compute, const void *constants, const nn_view *in1, const nn_view *in2,
             const nn_view *out, const nn_window *window) {
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    const int32_t channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < channels; i++, a += step1, b += step2) {
                result[i] = compute(constants, *a, *b);
            }
        }
    }
}

#endif
