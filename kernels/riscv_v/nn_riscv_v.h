/* Kernels for RISC-V cores with vectors: Zve32x (RVV 1.0, integers of at most 32 bits) suffices,
 * and registers may have any length from 128 bits on.
 *
 * They compute what their namesakes in nn.h compute, to the bit; convolutions and dense layers from
 * constants of their own packing (packing.py of the scalar kernels). Which shapes each serves is in
 * the catalogue.
 */
#ifndef NN_RISCV_V_H
#define NN_RISCV_V_H

#include "nn.h"

/* Any kernel size; groups 1. Scratch: four pixels' taps, none for 1 x 1 at stride 1 without
 * padding. */
void nn_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out);
/* The same of at most 8 output channels. */
void nn_few_outputs_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch);
int32_t nn_few_outputs_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry,
                                                   const nn_view *in, const nn_view *out);
/* As nn_conv2d_s8_rvv, of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
int32_t nn_grouped_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                               const nn_view *out);

void nn_transpose_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_transpose_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);

/* As nn_conv2d_s8_rvv, or a depthwise convolution of any multiplier, in groups of at most 8 input
 * and 8 output channels; no scratch. */
void nn_narrow_groups_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch);

/* Any kernel size; depth multiplier 1. */
void nn_depthwise_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);

/* The same of one column of taps and of inputs; the output lies elsewhere than the input. */
void nn_depthwise_nx1_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);

void nn_fully_connected_s8_rvv(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch);

/* Operands of the output's shape, or of one channel, or of one row or column. */
void nn_add_s8_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);
void nn_mul_s8_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);

void nn_maximum_s8_rvv(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);
void nn_minimum_s8_rvv(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);
void nn_add_s16_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_mul_s16_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_conv2d_s16_rvv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s16_rvv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                        const nn_view *out);
void nn_depthwise_conv2d_s16_rvv(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch);
void nn_fully_connected_s16_rvv(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch);
void nn_avg_pool_s16_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_max_pool_s16_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_copy_s8_rvv(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out);
void nn_fill_s8_rvv(const void *constants, int8_t *out, int32_t bytes);

const void *nn_expand_s4_rvv(const void *stored, int8_t *out, int32_t bytes);
void nn_lut_s8_rvv(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window);
void nn_avg_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_rvv(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_mean_s8_rvv(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out);

#endif
