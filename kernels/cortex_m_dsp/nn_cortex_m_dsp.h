/* Kernels for cores with the DSP extension: Cortex-M4, M7, M33 and their like.
 *
 * They compute what their namesakes in nn.h compute, to the bit, from constants of their own
 * packing (packing.py); which shapes each serves is in its catalogue. A kernel
 * that wants scratch (16-byte aligned) has a twin that says how many bytes.
 */
#ifndef NN_CORTEX_M_DSP_H
#define NN_CORTEX_M_DSP_H

#include "nn.h"
#include "nn_recurrent.h"

/* Any kernel size; groups 1. */
void nn_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out);
/* The same without scratch, where the input has a multiple of four channels. */
void nn_conv2d_direct_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
/* As nn_conv2d_s8_dsp, of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
int32_t nn_grouped_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                               const nn_view *out);

/* TRANSPOSE_CONV of any kernel size and strides; see nn_phases.h. */
void nn_transpose_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_transpose_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);

/* 1 x 1 without padding; groups 1. */
void nn_conv2d_1x1_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window,
                          void *scratch);
int32_t nn_conv2d_1x1_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                           const nn_view *out);

/* Any window: with depth multiplier 1 and 4 channels at least, with fewer; with any multiplier. */
void nn_depthwise_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_depthwise_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);
void nn_depthwise_narrow_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_depthwise_narrow_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);
void nn_depthwise_multiplied_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch);
int32_t nn_depthwise_multiplied_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                     const nn_view *in, const nn_view *out);

/* Depth multiplier 1, no dilation, 4 channels at least. */
void nn_depthwise_3x3_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_depthwise_3x3_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
void nn_depthwise_5x5_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_depthwise_5x5_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
void nn_depthwise_7x7_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_depthwise_7x7_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);

void nn_fully_connected_s8_dsp(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch);
int32_t nn_fully_connected_s8_dsp_scratch_bytes(const nn_view *in, const nn_view *out);

void nn_add_s8_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);
void nn_mul_s8_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);
void nn_maximum_s8_dsp(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);
void nn_minimum_s8_dsp(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);

void nn_avg_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_dsp(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_mean_s8_dsp(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out);

void nn_copy_s8_dsp(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out);

/* Any sizes; the LSTM with an input gate. Scratch as the catalogue says. */
void nn_svdf_s8_dsp(const nn_svdf_geometry *geometry, const void *constants, const int8_t *in,
                    void *state, int8_t *out, void *scratch);
void nn_lstm_s8_dsp(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                    void *hidden, void *cell, int8_t *out, void *scratch);

/* int16 activations. */
void nn_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch);
void nn_depthwise_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch);
void nn_transpose_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch);
void nn_avg_pool_s16_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_max_pool_s16_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_add_s16_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_mul_s16_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_fully_connected_s16_dsp(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch);

#endif
