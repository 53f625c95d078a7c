/* Sums over areas: four channels of a pixel in a word, as two words of two sums of 16 bits. */
#ifndef NN_LX106_REDUCE_H
#define NN_LX106_REDUCE_H

#include "nn_lx106.h"

#define NN_LX106_FOUR 4
#define NN_LX106_FLUSH 256 /* natural bytes whose sum 16 bits hold */

/* Adds `count` elements (256 at most), `step` bytes apart, of four channels side by side as natural
 * bytes to their sums. The channels begin at a multiple of four. */
static inline void nn_lx106_add_words(uint32_t sums[NN_LX106_FOUR], const int8_t *from,
                                      int32_t step, int32_t count) {
    uint32_t even = 0, odd = 0;
    for (; count > 0; count--, from += step) {
        const uint32_t word = *(const uint32_t *)(const void *)from ^ NN_LX106_BYTES;
        even += word & NN_LX106_PAIRS;
        odd += word >> 8 & NN_LX106_PAIRS;
    }
    sums[0] += even & 0xFFFF;
    sums[1] += odd & 0xFFFF;
    sums[2] += even >> 16;
    sums[3] += odd >> 16;
}

/* The same of any four channels, or of one. */
static inline __attribute__((always_inline)) void nn_lx106_add_bytes(uint32_t sums[NN_LX106_FOUR],
                                                                     const int8_t *from,
                                                                     int32_t step, int32_t count,
                                                                     const int32_t wide) {
    for (; count > 0; count--, from += step) {
#pragma GCC unroll 4
        for (int32_t i = 0; i < wide; i++) {
            sums[i] += (uint32_t)nn_lx106_natural(from + i);
        }
    }
}

/* Adds any number of elements of `wide` channels: 4 or 1. */
NN_OUTLINE void nn_lx106_take(uint32_t sums[NN_LX106_FOUR], const int8_t *from, int32_t step,
                              int32_t count, int32_t wide) {
    if (wide < NN_LX106_FOUR) {
        nn_lx106_add_bytes(sums, from, step, count, 1);
    } else if ((((uintptr_t)from | (uintptr_t)step) & 3) != 0) {
        nn_lx106_add_bytes(sums, from, step, count, NN_LX106_FOUR);
    } else {
        for (; count > 0; count -= NN_LX106_FLUSH, from += NN_LX106_FLUSH * step) {
            nn_lx106_add_words(sums, from, step, nn_min(count, NN_LX106_FLUSH));
        }
    }
}

#endif
