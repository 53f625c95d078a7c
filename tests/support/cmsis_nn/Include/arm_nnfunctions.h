/* A stand-in for CMSIS-NN in tests: the functions that the adapters call. */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include "arm_nn_types.h"

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *conv_params,
                                                const cmsis_nn_dims *input_dims,
                                                const cmsis_nn_dims *filter_dims,
                                                const cmsis_nn_dims *output_dims);
int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params *conv_params,
                                                    const cmsis_nn_dims *input_dims,
                                                    const cmsis_nn_dims *filter_dims,
                                                    const cmsis_nn_dims *output_dims);
int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params *conv_params,
                                                    const cmsis_nn_dims *input_dims,
                                                    const cmsis_nn_dims *filter_dims,
                                                    const cmsis_nn_dims *output_dims);
arm_cmsis_nn_status
arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
                        const cmsis_nn_per_channel_quant_params *quant_params,
                        const cmsis_nn_dims *input_dims, const int8_t *input_data,
                        const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
                        const cmsis_nn_dims *bias_dims, const int32_t *bias_data,
                        const cmsis_nn_dims *output_dims, int8_t *output_data);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *dw_conv_params,
                                                      const cmsis_nn_dims *input_dims,
                                                      const cmsis_nn_dims *filter_dims,
                                                      const cmsis_nn_dims *output_dims);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(
    const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(
    const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims);
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims,
    const int8_t *input_data, const cmsis_nn_dims *filter_dims, const int8_t *filter_data,
    const cmsis_nn_dims *bias_dims, const int32_t *bias_data, const cmsis_nn_dims *output_dims,
    int8_t *output_data);
arm_cmsis_nn_status
arm_elementwise_add_s8(const int8_t *input_1, const int8_t *input_2, int32_t input_1_offset,
                       int32_t input_1_mult, int32_t input_1_shift, int32_t input_2_offset,
                       int32_t input_2_mult, int32_t input_2_shift, int32_t left_shift,
                       int8_t *output, int32_t out_offset, int32_t out_mult, int32_t out_shift,
                       int32_t out_activation_min, int32_t out_activation_max, int32_t block_size);
arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t *input_1, const int8_t *input_2,
                                           int32_t input_1_offset, int32_t input_2_offset,
                                           int8_t *output, int32_t out_offset, int32_t out_mult,
                                           int32_t out_shift, int32_t out_activation_min,
                                           int32_t out_activation_max, int32_t block_size);
int32_t arm_avgpool_s8_get_buffer_size(int output_x, int ch_src);
int32_t arm_avgpool_s8_get_buffer_size_mve(int output_x, int ch_src);
int32_t arm_avgpool_s8_get_buffer_size_dsp(int output_x, int ch_src);
arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx,
                                   const cmsis_nn_pool_params *pool_params,
                                   const cmsis_nn_dims *input_dims, const int8_t *input_data,
                                   const cmsis_nn_dims *filter_dims,
                                   const cmsis_nn_dims *output_dims, int8_t *output_data);
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx,
                                    const cmsis_nn_pool_params *pool_params,
                                    const cmsis_nn_dims *input_dims, const int8_t *input_data,
                                    const cmsis_nn_dims *filter_dims,
                                    const cmsis_nn_dims *output_dims, int8_t *output_data);
void arm_softmax_s8(const int8_t *input, int32_t num_rows, int32_t row_size, int32_t mult,
                    int32_t shift, int32_t diff_min, int8_t *output);

#endif
