/* What a dense layer's C and assembly share. */
#ifndef NN_MVE_DENSE_H
#define NN_MVE_DENSE_H

#define DENSE_REST 24 /* offset in nn_mve_dense */

#ifndef __ASSEMBLER__
#include "nn_mve.h"

/* What the assembly reads, in this order. */
typedef struct {
    const int8_t *x, *weights;
    int32_t padded; /* 16 n, of n vectors */
    int32_t *sums;
    int32_t inputs;
    int32_t tiles; /* of six outputs */
    int32_t rest;  /* single outputs behind them */
} nn_mve_dense;

NN_MVE_AT(nn_mve_dense, rest, DENSE_REST);

/* Computes sums, biases included; returns the weights behind those that it used. */
const int8_t *nn_mve_dense_dots(const nn_mve_dense *dense);
#endif

#endif
