/* The numbers of Fourier transforms in fixed point: the including file defines NN_FFT_BITS. */
#ifndef NN_FFT_FIXED_H
#define NN_FFT_FIXED_H

#include <stdint.h>

#if NN_FFT_BITS == 16
typedef int16_t nn_scalar;
typedef int32_t nn_wide;
#else
typedef int32_t nn_scalar;
typedef int64_t nn_wide;
#endif

typedef struct {
    nn_scalar re, im;
} nn_complex;

static inline nn_scalar nn_sum(nn_scalar a, nn_scalar b) {
    return (nn_scalar)((uint32_t)a + (uint32_t)b);
}

static inline nn_scalar nn_difference(nn_scalar a, nn_scalar b) {
    return (nn_scalar)((uint32_t)a - (uint32_t)b);
}

static inline nn_scalar nn_negated(nn_scalar a) {
    return (nn_scalar)(0U - (uint32_t)a);
}

static inline nn_scalar nn_half(nn_scalar a) {
    return (nn_scalar)(a >> 1);
}

static inline nn_scalar nn_half_sum(nn_scalar a, nn_scalar b) {
    return (nn_scalar)((int32_t)((uint32_t)a + (uint32_t)b) >> 1);
}

static inline nn_scalar nn_half_difference(nn_scalar a, nn_scalar b) {
    return (nn_scalar)((int32_t)((uint32_t)a - (uint32_t)b) >> 1);
}

static inline nn_scalar nn_rounded(nn_wide product) {
    return (nn_scalar)((product + ((nn_wide)1 << (NN_FFT_BITS - 2))) >> (NN_FFT_BITS - 1));
}

static inline nn_scalar nn_scaled(nn_scalar a, nn_scalar b) {
    return nn_rounded((nn_wide)a * b);
}

static inline nn_scalar nn_share(nn_scalar a, int32_t radix) {
    return nn_rounded(a * (nn_wide)(((1U << (NN_FFT_BITS - 1)) - 1) / (uint32_t)radix));
}

static inline nn_complex nn_product(nn_complex a, nn_complex b) {
    const nn_complex product = {nn_rounded((nn_wide)a.re * b.re - (nn_wide)a.im * b.im),
                                nn_rounded((nn_wide)a.re * b.im + (nn_wide)a.im * b.re)};
    return product;
}

#include "nn_fft.h"

#endif
