/* Depthwise kernels of one row or one column of taps; nn_depthwise_1xn_s8_mve.c says how. */
#ifndef NN_MVE_DEPTHWISE_LINE_H
#define NN_MVE_DEPTHWISE_LINE_H

#include "nn_mve_depthwise.h"

#define NN_MVE_LINE_TILE 8 /* outputs computed together, of more than four taps */

/* Words of a channel's taps, the last one filled up with zeros. */
static inline int32_t nn_mve_line_words(int32_t taps) {
    return (taps + 3) >> 2;
}

/* Words that a vector takes from different columns: one, two or four. */
static inline int32_t nn_mve_words_met(int32_t taps) {
    return taps <= 8 ? nn_mve_line_words(taps) : 4;
}

static inline int32_t nn_mve_line_scratch(int32_t taps) {
    const int32_t last = 2 * (NN_MVE_LINE_TILE - 1 + 4 * (nn_mve_words_met(taps) - 1));
    return 16 + WORD_PITCH * (taps <= 4 ? 15 + 4 : last + 1);
}

#endif
