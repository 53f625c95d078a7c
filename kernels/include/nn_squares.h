/* SPACE_TO_DEPTH and DEPTH_TO_SPACE: squares of pixels to channels and back, a row of a square at a
 * time where its pixels lie side by side. */
#ifndef NN_SQUARES_H
#define NN_SQUARES_H

#include "nn_arith.h"

static inline void nn_square_copy(int8_t *out, const int8_t *in, int32_t count) {
    if (count < 8) { /* a call would cost more */
        for (; count > 0; count--) {
            *out++ = *in++;
        }
    } else {
        NN_MEMCPY(out, in, (size_t)count);
    }
}

/* Pixels from column x on, of `wanted`, that are one block of memory. */
static inline int32_t nn_square_run(const nn_view *view, int32_t x, int32_t wanted) {
    return nn_dense(view) ? nn_run(view, x, wanted) : 1;
}

#endif
