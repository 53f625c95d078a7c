/* Sums over the rows of a moving window. The file that includes this one defines nn_summand, the
 * type of the elements, before. */
#ifndef NN_MOVING_SUMS_H
#define NN_MOVING_SUMS_H

#include "nn_moving.h"

/* Adds `pixels` pixels to the sums of their channels. */
static inline void nn_add_pixels(int32_t *sums, const nn_summand *pixel, int32_t pixels,
                                 int32_t channels) {
    for (int32_t i = 0; i < pixels; i++, pixel += channels) {
        for (int32_t c = 0; c < channels; c++) {
            sums[c] = nn_wrapping_add(sums[c], pixel[c]);
        }
    }
}

/* Element `i` of a ring of sums. */
static inline int32_t nn_ring_sum(const void *ring, int32_t i, int32_t bytes) {
    if (bytes == 1) {
        return ((const int8_t *)ring)[i];
    }
    return bytes == 2 ? ((const int16_t *)ring)[i] : ((const int32_t *)ring)[i];
}

static inline void nn_set_ring_sum(void *ring, int32_t i, int32_t bytes, int32_t sum) {
    if (bytes == 1) {
        ((int8_t *)ring)[i] = (int8_t)sum;
    } else if (bytes == 2) {
        ((int16_t *)ring)[i] = (int16_t)sum;
    } else {
        ((int32_t *)ring)[i] = sum;
    }
}

static inline void nn_sliding_sum(const nn_sliding_geometry *g, const int8_t *const *inputs,
                                  void *state, int32_t *sums) {
    const int32_t channels = g->channels, width = g->width;
    const nn_summand *last = (const nn_summand *)(const void *)inputs[0];
    int32_t *place = nn_ring_place(state, g->rows * channels * g->bytes), *totals = place + 1;
    for (int32_t row = 0; row < g->entering; row++, last += width * channels) {
        const int32_t begin = *place * channels;
        for (int32_t c = 0; c < channels; c++) {
            sums[c] = 0;
        }
        nn_add_pixels(sums, last, width, channels);
        for (int32_t c = 0; c < channels; c++) {
            const int32_t leaving = nn_ring_sum(state, begin + c, g->bytes);
            totals[c] = nn_wrapping_add(totals[c], sums[c] - leaving);
            nn_set_ring_sum(state, begin + c, g->bytes, sums[c]);
        }
        *place = nn_ring_after(*place, 1, g->rows);
    }
    for (int32_t c = 0; c < channels; c++) {
        sums[c] = totals[c];
    }
    nn_add_pixels(sums, last, (g->last_rows - g->entering) * width, channels);
    if (g->has_first) {
        const int32_t *first = (const int32_t *)(const void *)inputs[1];
        for (int32_t c = 0; c < channels; c++) {
            sums[c] = nn_wrapping_add(sums[c], first[c]);
        }
    }
}

#endif
