/* A convolution's inner loops: pairs of pixels times all output channels, put out.
 *
 * They are assembly: nn_mve_pairs.S, which requantises, and nn_mve_dots.S, which computes sums.
 */
#ifndef NN_MVE_PAIRS_H
#define NN_MVE_PAIRS_H

#define PAIRS_BLOCK 48 /* channels whose sums wait together; a multiple of 3 and of 4 */

/* Offsets in nn_mve_pairs. */
#define PAIRS_OFFSETS 0
#define PAIRS_X0 16
#define PAIRS_X_STEP 24
#define PAIRS_OUT 28
#define PAIRS_OUT_STEP 32
#define PAIRS_LEFT 36
#define PAIRS_WEIGHTS 40
#define PAIRS_FACTORS 44
#define PAIRS_OUTPUTS 48
#define PAIRS_INPUTS 52
#define PAIRS_DOTS 56

/* Offsets in the nn_mve_head, from its end on. */
#define PAIRS_ZERO_POINT (-28)
#define PAIRS_HIGH (-20)

/* The frame of nn_mve_run_pairs, from the stack pointer on. */
#define PAIRS_SELF 0      /* the nn_mve_pairs */
#define PAIRS_REST 4      /* channels of the block that are not in tiles of three */
#define PAIRS_AT 8        /* the block's factors, and its outputs of the first pixel */
#define PAIRS_CHANNELS 16 /* that are left, the block's included */
#define PAIRS_SUMS 20     /* int32[2 * PAIRS_BLOCK] */
#define PAIRS_FRAME (PAIRS_SUMS + 8 * PAIRS_BLOCK)

#ifndef __ASSEMBLER__
#include "nn_mve.h"

/* What the assembly reads and changes, at the offsets above. */
typedef struct {
    uint16x8_t
        offsets; /* 0, d, 1, d + 1, ... with d bytes from one pixel's outputs to the other's */
    const int8_t *x0, *x1;  /* the inputs of the two pixels */
    int32_t x_step;         /* from pair to pair */
    int8_t *out;            /* of the first pixel */
    int32_t out_step;       /* from pair to pair */
    int32_t left;           /* pairs */
    const int8_t *weights;  /* of all channels */
    const int32_t *factors; /* for each four channels multipliers and shifts; behind nn_mve_head */
    int32_t outputs;        /* channels */
    int32_t inputs;         /* bytes of a pixel's inputs */
    void (*dots)(void);     /* computes sums */
    int32_t apart; /* what offsets and dots are for: bytes between two pixels; 0: one pixel */
} nn_mve_pairs;

NN_MVE_AT(nn_mve_pairs, x0, PAIRS_X0);
NN_MVE_AT(nn_mve_pairs, x_step, PAIRS_X_STEP);
NN_MVE_AT(nn_mve_pairs, left, PAIRS_LEFT);
NN_MVE_AT(nn_mve_pairs, weights, PAIRS_WEIGHTS);
NN_MVE_AT(nn_mve_pairs, outputs, PAIRS_OUTPUTS);
NN_MVE_AT(nn_mve_pairs, inputs, PAIRS_INPUTS);
NN_MVE_AT(nn_mve_pairs, dots, PAIRS_DOTS);
NN_MVE_AT(nn_mve_head, mode, (size_t)((int)sizeof(nn_mve_head) + PAIRS_HIGH + 4));

/* Computes the pairs one after the other; x0, x1 and out end behind the last one, left is 0. */
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

#endif
