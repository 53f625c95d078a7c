/* The Helium kernels (Armv8.1-M MVE, integer): as their plain twins in nn.h, to the bit, with
 * constants of their own where the C files say so. The bytes of scratch that some need are
 * functions of the geometry, equal to the catalogue's formulas. */
#ifndef NN_CORTEX_M_MVE_H
#define NN_CORTEX_M_MVE_H

#include "nn.h"
#include "nn_recurrent.h"

/* The kernels: as their plain twins in nn.h, with constants of their own where the files say so,
 * and what they need of scratch: a function of the geometry, as the catalogue's formula. */
void nn_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch);
int32_t nn_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out);
/* As nn_conv2d_s8_mve, of one column of taps of more than one row, and of one column of inputs. */
void nn_conv2d_column_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_conv2d_column_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
/* As nn_conv2d_s8_mve, with half the scratch. */
void nn_conv2d_single_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_conv2d_single_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
/* As nn_conv2d_s8_mve, of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);
int32_t nn_grouped_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                               const nn_view *out);
void nn_depthwise_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_depthwise_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);
void nn_transpose_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);
int32_t nn_transpose_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out);
void nn_depthwise_1xn_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_depthwise_1xn_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
void nn_depthwise_nx1_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
int32_t nn_depthwise_nx1_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
void nn_fully_connected_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch);
void nn_add_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);
void nn_add_widened_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                           const nn_view *filling, const nn_view *out, const nn_window *window,
                           int32_t before);
void nn_mul_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);
void nn_maximum_s8_mve(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);
void nn_minimum_s8_mve(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window);
const void *nn_expand_s4_mve(const void *stored, int8_t *out, int32_t bytes);
void nn_lut_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window);
void nn_avg_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_mve(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_mean_s8_mve(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out);
void nn_fill_s8_mve(const void *constants, int8_t *out, int32_t bytes);
void nn_fill_s16_mve(const void *constants, int8_t *out, int32_t bytes);
void nn_copy_s8_mve(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out);
void nn_softmax_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_svdf_s8_mve(const nn_svdf_geometry *geometry, const void *constants, const int8_t *in,
                    void *state, int8_t *out);
void nn_lstm_s8_mve(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                    void *hidden, void *cell, int8_t *out, void *scratch);

/* int16 activations. */
void nn_add_s16_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_mul_s16_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_avg_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_max_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window);
void nn_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch);
void nn_grouped_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch);
void nn_transpose_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch);
void nn_depthwise_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch);
void nn_fully_connected_s16_mve(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch);

#endif
