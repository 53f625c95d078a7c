/* LOGISTIC and TANH on int16: a table of half the logistic function, interpolated. A place counts
 * steps of 1 / 12288. */
#ifndef NN_SIGMOID_H
#define NN_SIGMOID_H

#include "nn_arith.h"

static inline int32_t nn_sigmoid_place(const nn_sigmoid_constants *c, int32_t value) {
    const int32_t half = c->right_shift > 0 ? 1 << (c->right_shift - 1) : 0;
    return (value * c->multiplier + half) >> c->right_shift;
}

/* In steps of 1 / 24. */
static inline int16_t nn_sigmoid(const uint16_t *table, int32_t place) {
    const uint32_t size = place < 0 ? 0U - (uint32_t)place : (uint32_t)place;
    const uint32_t index = size >> 9, part = size & 511;
    uint32_t result = 0x7FFFU << 10;
    if (index < 255) {
        const uint32_t low = table[index], high = table[index + 1];
        result = (low << 9) + part * (high - low);
    }
    result = place >= 0 ? result + (1U << 9) : (1U << 25) - result + (1U << 9) - 1;
    return (int16_t)(result >> 10);
}

/* 2 * sigmoid(2x) - 1: in steps of 1 / 48. */
static inline int16_t nn_sigmoid_tangent(const uint16_t *table, int32_t place) {
    const uint32_t size = place < 0 ? 0U - (uint32_t)place : (uint32_t)place;
    const uint32_t index = size >> 8, part = size & 255;
    int32_t result = 0xFFFF << 8;
    if (index < 255) {
        const uint32_t low = table[index], high = table[index + 1];
        result = (int32_t)((low << 8) + part * (high - low));
    }
    result = place >= 0 ? result - (1 << 23) + (1 << 7) : (1 << 23) - result + (1 << 7) - 1;
    return (int16_t)(result >> 8);
}

#endif
