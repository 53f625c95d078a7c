/* Scalar kernels for 32-bit RISC-V cores with multiplication.
 *
 * They compute what their namesakes in nn.h compute, to the bit, from constants of their own
 * packing (buildtool/emit/packing_riscv.py); which shapes each serves is in its catalogue.
 */
#ifndef NN_RISCV_H
#define NN_RISCV_H

#include "nn.h"

/* Any kernel size; groups 1. Scratch: four pixels' taps. */
void nn_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch);

/* 3 x 3, depth multiplier 1, no dilation across columns. */
void nn_depthwise_3x3_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch);

void nn_fully_connected_s8_riscv(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch);

#endif
