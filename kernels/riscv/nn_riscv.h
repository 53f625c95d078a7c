/* Scalar kernels for 32-bit RISC-V cores with multiplication.
 *
 * They compute what their namesakes in nn.h compute, to the bit, from constants of their own
 * packing (packing.py); which shapes each serves is in its catalogue.
 */
#ifndef NN_RISCV_H
#define NN_RISCV_H

#include "nn.h"

/* Any kernel size; groups 1. Scratch: four pixels' taps, none for 1 x 1 at stride 1 without
 * padding. */
void nn_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s8_riscv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                         const nn_view *out);
/* As nn_conv2d_s8_riscv, of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_grouped_conv2d_s8_riscv_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);

void nn_transpose_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch);
int32_t nn_transpose_conv2d_s8_riscv_scratch_bytes(const nn_conv_geometry *geometry,
                                                   const nn_view *in, const nn_view *out);

/* Any height, at most as many columns as the name says; any depth multiplier, no dilation across
 * columns, column stride 1 or 2. Each row of a channel's weights is filled up to that width. */
void nn_depthwise_w3_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
void nn_depthwise_w5_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
void nn_depthwise_w7_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
void nn_depthwise_conv2d_s16_riscv(const nn_conv_geometry *geometry, const void *constants,
                                   const nn_view *in, const nn_view *out, const nn_window *window,
                                   void *scratch);
void nn_depthwise_w9_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);

/* One column of at most seven taps over one column of inputs, with the constants of a kernel of one
 * row; the output lies elsewhere than the input. */
void nn_depthwise_nx1_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch);

void nn_fully_connected_s8_riscv(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch);

void nn_add_s8_riscv(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window);
void nn_mul_s8_riscv(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window);

void nn_maximum_s8_riscv(const nn_view *in1, const nn_view *in2, const nn_view *out,
                         const nn_window *window);
void nn_minimum_s8_riscv(const nn_view *in1, const nn_view *in2, const nn_view *out,
                         const nn_window *window);
void nn_copy_s8_riscv(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out);

void nn_lut_s8_riscv(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window);
void nn_avg_pool_s8_riscv(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_riscv(const nn_pool_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_riscv(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window);
void nn_mean_s8_riscv(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                      int8_t *out);

void nn_add_s16_riscv(const void *constants, const nn_view *in1, const nn_view *in2,
                      const nn_view *out, const nn_window *window);
void nn_mul_s16_riscv(const void *constants, const nn_view *in1, const nn_view *in2,
                      const nn_view *out, const nn_window *window);
void nn_avg_pool_s16_riscv(const nn_pool_geometry *geometry, const void *constants,
                           const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s16_riscv(const nn_pool_geometry *geometry, const void *constants,
                           const nn_view *in, const nn_view *out, const nn_window *window);

#endif
