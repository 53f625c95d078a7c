/* SignalOverlapAdd, for any type of samples. */
#ifndef NN_SIGNAL_OVERLAP_H
#define NN_SIGNAL_OVERLAP_H

#include "nn_signal.h"

/* The body of a kernel: adds each frame to the sums, whose first samples are then done. */
#define NN_OVERLAP_ADD(type, add)                                                                  \
    const nn_signal_overlap_geometry g = *geometry;                                                \
    const type *sample = (const type *)(const void *)in;                                           \
    type *sums = state, *done = (type *)(void *)out;                                               \
    for (int32_t channel = 0; channel < g.channels; channel++, sums += g.size) {                   \
        for (int32_t frame = 0; frame < g.frames; frame++) {                                       \
            for (int32_t i = 0; i < g.size; i++) {                                                 \
                const type next = add(sums[i], *sample++);                                         \
                *(i < g.step ? done++ : sums + i - g.step) = next;                                 \
            }                                                                                      \
            for (int32_t i = g.size - g.step; i < g.size; i++) {                                   \
                sums[i] = 0;                                                                       \
            }                                                                                      \
        }                                                                                          \
    }

#endif
