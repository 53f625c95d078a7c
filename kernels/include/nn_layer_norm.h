/* Layer normalisation of an LSTM's gate, as the reference kernels do it in integers. */
#ifndef NN_LAYER_NORM_H
#define NN_LAYER_NORM_H

#include "nn_arith.h"
#include "nn_recurrent.h"

static inline int32_t nn_norm_saturating_shift(int32_t value, int32_t bits) {
    const int32_t limit = INT32_MAX >> bits;
    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit - 1 ? INT32_MIN : value * (1 << bits);
}

/* 1 / sqrt(value) of value >= 1 as multiplier * 2^(*shift - 31): Newton's method, five steps
 * from 1. */
static inline int32_t nn_inverse_square_root(int32_t value, int32_t *shift) {
    int32_t right = 11, bits = 0, pairs, number, half, x = 1 << 28;
    if (value <= 1) {
        *shift = 0;
        return INT32_MAX;
    }
    while (value >= 1 << 29) {
        value /= 4;
        right++;
    }
    while (value >> bits != 0) {
        bits++;
    }
    pairs = (31 - bits) / 2 - 1;
    right -= pairs;
    number = (value << (2 * pairs)) >> 1; /* Q3.28, as x */
    half = nn_rounding_shift(number, 1);
    for (int32_t step = 0; step < 5; step++) {
        const int32_t square = nn_high_multiply(x, x);
        const int32_t cube = nn_norm_saturating_shift(nn_high_multiply(square, x), 6);
        const int32_t three_halves = nn_high_multiply((1 << 28) + (1 << 27), x);
        x = nn_norm_saturating_shift(three_halves - nn_high_multiply(half, cube), 3);
    }
    x = nn_high_multiply(x, 1518500250); /* sqrt(1/2) */
    if (right < 0) {
        *shift = 0;
        return (int32_t)((uint32_t)x << -right);
    }
    *shift = -right;
    return x;
}

/* value / 1024 rounded, halves away from zero. */
static inline int32_t nn_norm_rounded(int32_t value) {
    const uint32_t size = value < 0 ? 0U - (uint32_t)value : (uint32_t)value;
    const int32_t rounded = (int32_t)((size + 512U) >> 10);
    return value < 0 ? -rounded : rounded;
}

/* The `count` sums of a gate, in place. No 64-bit division: firmware has no library for it. */
static inline void nn_layer_norm(const nn_lstm_gate *gate, const int32_t *biases,
                                 const int16_t *weights, int16_t *sums, int32_t count) {
    int64_t total = 0, squares = 0, variance;
    uint32_t size, number = (uint32_t)count;
    int32_t mean, multiplier, shift;
    for (int32_t i = 0; i < count; i++) {
        total += sums[i];
        squares += sums[i] * sums[i];
    }
    size = (uint32_t)(total < 0 ? -total : total); /* 2^15 for each of less than 2^17 */
    mean = (int32_t)(size / number * 1024 + size % number * 1024 / number);
    mean = total < 0 ? -mean : mean;
    variance = squares * ((1 << 20) / count) - (int64_t)mean * mean;
    multiplier = nn_inverse_square_root(
        variance < 1 << 20 ? gate->norm_guard : (int32_t)(variance >> 20), &shift);
    for (int32_t i = 0; i < count; i++) {
        const int32_t scaled = nn_requantise(1024 * sums[i] - mean, multiplier, shift);
        const int32_t weighted = (int32_t)((uint32_t)scaled * (uint32_t)weights[i]);
        const int32_t rounded = nn_norm_rounded(nn_wrapping_add(weighted, biases[i]));
        const int32_t result = nn_requantise(rounded, gate->norm_multiplier, gate->norm_shift);
        sums[i] = (int16_t)nn_clamp(result, -32768, 32767);
    }
}

#endif
