/* Maxima over the rows of a moving window. The file that includes this one defines nn_summand, the
 * type of the elements, before. */
#ifndef NN_MOVING_MAXIMA_H
#define NN_MOVING_MAXIMA_H

#include "nn_moving.h"

/* Raises the maxima of the channels to those of `pixels` pixels. */
static inline void nn_raise_to_pixels(nn_summand *maxima, const nn_summand *pixel, int32_t pixels,
                                      int32_t channels) {
    for (int32_t i = 0; i < pixels; i++, pixel += channels) {
        for (int32_t c = 0; c < channels; c++) {
            maxima[c] = pixel[c] > maxima[c] ? pixel[c] : maxima[c];
        }
    }
}

static inline void nn_sliding_max(const nn_sliding_geometry *g, const int8_t *const *inputs,
                                  void *state, nn_summand *maxima) {
    const int32_t channels = g->channels, width = g->width;
    const nn_summand *last = (const nn_summand *)(const void *)inputs[0];
    nn_summand *ring = (nn_summand *)state;
    int32_t *place = nn_ring_place(state, g->entries * channels * g->bytes);
    for (int32_t i = 0; i < 2 && g->blocks[i] > 0; i++) {
        nn_summand *to = ring + *place * channels;
        const int32_t pixels = g->blocks[i] * width;
        NN_MEMCPY(to, last, (size_t)(channels * g->bytes));
        nn_raise_to_pixels(to, last + channels, pixels - 1, channels);
        last += pixels * channels;
        *place = nn_ring_after(*place, 1, g->entries);
    }
    NN_MEMCPY(maxima, ring, (size_t)(channels * g->bytes));
    nn_raise_to_pixels(maxima, ring + channels, g->entries - 1, channels);
    nn_raise_to_pixels(maxima, last, (g->last_rows - g->entering) * width, channels);
    if (g->has_first) {
        nn_raise_to_pixels(maxima, (const nn_summand *)(const void *)inputs[1], 1, channels);
    }
}

#endif
