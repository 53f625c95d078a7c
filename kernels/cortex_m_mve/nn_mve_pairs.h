/* A convolution's inner loops: pairs of pixels times all output channels, put out. */
#ifndef NN_MVE_PAIRS_H
#define NN_MVE_PAIRS_H

#include "nn_mve.h"

#define NN_MVE_BLOCK 48 /* channels whose sums wait together; a multiple of 3 and of 4 */

/* What the assembly reads and changes; it knows the order. */
typedef struct {
    int16x8_t low, high; /* 0, 16: clamps */
    uint16x8_t
        offsets; /* 32: 0, d, 1, d + 1, ... with d bytes from one pixel's outputs to the other's */
    const int8_t *x0, *x1;  /* 48, 52: the inputs of the two pixels */
    int32_t x_step;         /* 56: from pair to pair */
    int8_t *out;            /* 60: of the first pixel */
    int32_t out_step;       /* 64 */
    int32_t pairs;          /* 68 */
    const int8_t *weights;  /* 72 */
    const int32_t *factors; /* 76: for each four channels multipliers and shifts */
    int32_t outputs;        /* 80: channels */
    int32_t zero_point;     /* 84 */
    int32_t mode;           /* 88: NN_MVE_* */
    int32_t inputs;         /* 92: bytes of a pixel's inputs */
    int32_t before_last;    /* 96: 16 (n - 1), of n vectors */
    void (*dots)(void);     /* 100: computes sums */
    int32_t *sums;          /* 104: room for 2 * NN_MVE_BLOCK */
} nn_mve_pairs;

/* Computes the pairs one after the other; x0, x1 and out end behind the last one, pairs is 0. */
void nn_mve_run_pairs(nn_mve_pairs *p);

/* The sums of two pixels, for as many vectors a channel as they say, and of one pixel, which has to
 * be given as both (d = 0). Only nn_mve_run_pairs can call them. */
void nn_mve_dots_1(void);
void nn_mve_dots_2(void);
void nn_mve_dots_3(void);
void nn_mve_dots_8(void); /* 2 to 8 */
void nn_mve_dots_any(void);
void nn_mve_dots_single(void);

#endif
