/* The input of a network's self-test: from flash, or made from a seed. */
#ifndef NN_GOLDEN_H
#define NN_GOLDEN_H

#include <stdint.h>

static inline void nn_golden_copy(int8_t *to, const uint8_t *from, uint32_t bytes) {
    uint8_t *const data = (uint8_t *)to;
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = from[i];
    }
}

/* Writes bytes `first`, `first` + 1 ... of the seed's input to `to`. Each byte depends on its place
 * alone, by the finaliser of MurmurHash3. */
static inline void nn_golden_fill(int8_t *to, uint32_t seed, uint32_t first, uint32_t bytes) {
    uint8_t *const data = (uint8_t *)to;
    for (uint32_t i = 0; i < bytes; i++) {
        uint32_t x = seed + (first + i) * 0x9E3779B1U;
        x = (x ^ (x >> 16)) * 0x85EBCA6BU;
        x = (x ^ (x >> 13)) * 0xC2B2AE35U;
        data[i] = (uint8_t)((x ^ (x >> 16)) & 0xFFU);
    }
}

#endif
