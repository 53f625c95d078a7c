/* Scalar kernels for cores that multiply 32 bits to 32 and load signed bytes only at some cost:
 * Xtensa's LX106, Cortex-M0 and M0+; the convolutions and maxima for Cortex-M3, too.
 *
 * They compute what their namesakes in nn.h compute, to the bit, those of convolutions and dense
 * layers from constants of their own packing (packing.py); which shapes each serves is in its
 * catalogue. Constants are read by aligned words alone, as the chip's mapped flash needs it.
 */
#ifndef NN_MUL32_H
#define NN_MUL32_H

#include "nn.h"

/* Any kernel size; groups 1. Scratch: four pixels' taps, twice where they are collected first. */
void nn_conv2d_s8_mul32(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s8_mul32_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                         const nn_view *out);
/* As nn_conv2d_s8_mul32, of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_mul32(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_grouped_conv2d_s8_mul32_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);

/* Any height, at most as many columns as the name says; depth multiplier 1, no dilation across
 * columns, column stride 1 or 2. */
void nn_depthwise_w3_s8_mul32(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
void nn_depthwise_w5_s8_mul32(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
void nn_depthwise_w7_s8_mul32(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);

void nn_fully_connected_s8_mul32(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch);

void nn_add_s8_mul32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window);
void nn_mul_s8_mul32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window);

void nn_avg_pool_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window);
void nn_mean_s8_mul32(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                      int8_t *out);

#endif
