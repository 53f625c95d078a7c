/* Dot products of int8 vectors. */
#ifndef NN_DOT_H
#define NN_DOT_H

#include "nn_conv.h"

/* Whether four outputs are computed at once, which takes more code: not where the compiler is asked
 * for small code (-Os). */
#ifdef __OPTIMIZE_SIZE__
#define NN_FOURS 0
#else
#define NN_FOURS 1
#endif

/* Adds the dot products of x and four rows of weights, `stride` bytes apart, to sums. */
NN_OUTLINE void nn_dot4(int32_t sums[4], const int8_t *x, const int8_t *weights, int32_t stride,
                        int32_t count) {
    const int8_t *w0 = weights, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    const int8_t *end = x + count;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    while (x != end) {
        const int32_t value = *x++;
        s0 += value * *w0++;
        s1 += value * *w1++;
        s2 += value * *w2++;
        s3 += value * *w3++;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The same with every element of x being `value`. */
NN_OUTLINE void nn_sum4(int32_t sums[4], int32_t value, const int8_t *weights, int32_t stride,
                        int32_t count) {
    const int8_t *w0 = weights, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    const int8_t *end = w0 + count;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    while (w0 != end) {
        s0 += value * *w0++;
        s1 += value * *w1++;
        s2 += value * *w2++;
        s3 += value * *w3++;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

NN_OUTLINE int32_t nn_dot(const int8_t *x, const int8_t *weights, int32_t count) {
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += x[i] * weights[i];
    }
    return sum;
}

#endif
