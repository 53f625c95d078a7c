/* The numbers of Fourier transforms of float32. */
#ifndef NN_FFT_FLOAT_H
#define NN_FFT_FLOAT_H

#include <stdint.h>

typedef float nn_scalar;

typedef struct {
    nn_scalar re, im;
} nn_complex;

static inline float nn_sum(float a, float b) {
    return a + b;
}

static inline float nn_difference(float a, float b) {
    return a - b;
}

static inline float nn_negated(float a) {
    return -a;
}

static inline float nn_half(float a) {
    return a * 0.5F;
}

static inline float nn_half_sum(float a, float b) {
    return (a + b) * 0.5F;
}

static inline float nn_half_difference(float a, float b) {
    return (a - b) * 0.5F;
}

static inline float nn_scaled(float a, float b) {
    return a * b;
}

static inline float nn_share(float a, int32_t radix) {
    (void)radix;
    return a;
}

static inline nn_complex nn_product(nn_complex a, nn_complex b) {
    const nn_complex product = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return product;
}

#include "nn_fft.h"

#endif
