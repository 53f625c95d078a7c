/* CMSIS-NN's names of what library_calls.c uses, for muriscv-nn: the same functions with another
 * prefix. (The library's own header of this kind does not compile.) */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include "muriscv_nn_functions.h"

#define ARM_CMSIS_NN_SUCCESS MURISCV_NN_SUCCESS
#define ARM_CMSIS_NN_ARG_ERROR MURISCV_NN_ARG_ERROR

#define cmsis_nn_activation muriscv_nn_activation
#define cmsis_nn_bias_data muriscv_nn_bias_data
#define cmsis_nn_context muriscv_nn_context
#define cmsis_nn_conv_params muriscv_nn_conv_params
#define cmsis_nn_dims muriscv_nn_dims
#define cmsis_nn_dw_conv_params muriscv_nn_dw_conv_params
#define cmsis_nn_fc_params muriscv_nn_fc_params
#define cmsis_nn_per_channel_quant_params muriscv_nn_per_channel_quant_params
#define cmsis_nn_per_tensor_quant_params muriscv_nn_per_tensor_quant_params
#define cmsis_nn_pool_params muriscv_nn_pool_params
#define cmsis_nn_tile muriscv_nn_tile
#define cmsis_nn_transpose_conv_params muriscv_nn_transpose_conv_params

#define arm_avgpool_s16 muriscv_nn_avgpool_s16
#define arm_avgpool_s8 muriscv_nn_avgpool_s8
#define arm_avgpool_s8_get_buffer_size muriscv_nn_avgpool_s8_get_buffer_size
#define arm_concatenation_s8_x muriscv_nn_concatenation_s8_x
#define arm_convolve_s8 muriscv_nn_convolve_s8
#define arm_convolve_s8_get_buffer_size muriscv_nn_convolve_s8_get_buffer_size
#define arm_convolve_wrapper_s16 muriscv_nn_convolve_wrapper_s16
#define arm_convolve_wrapper_s16_get_buffer_size muriscv_nn_convolve_wrapper_s16_get_buffer_size
#define arm_convolve_wrapper_s8 muriscv_nn_convolve_wrapper_s8
#define arm_convolve_wrapper_s8_get_buffer_size muriscv_nn_convolve_wrapper_s8_get_buffer_size
#define arm_depthwise_conv_wrapper_s16 muriscv_nn_depthwise_conv_wrapper_s16
#define arm_depthwise_conv_wrapper_s16_get_buffer_size                                             \
    muriscv_nn_depthwise_conv_wrapper_s16_get_buffer_size
#define arm_depthwise_conv_wrapper_s8 muriscv_nn_depthwise_conv_wrapper_s8
#define arm_depthwise_conv_wrapper_s8_get_buffer_size                                              \
    muriscv_nn_depthwise_conv_wrapper_s8_get_buffer_size
#define arm_elementwise_add_s16 muriscv_nn_elementwise_add_s16
#define arm_elementwise_add_s8 muriscv_nn_elementwise_add_s8
#define arm_elementwise_mul_s16 muriscv_nn_elementwise_mul_s16
#define arm_elementwise_mul_s8 muriscv_nn_elementwise_mul_s8
#define arm_fully_connected_s16 muriscv_nn_fully_connected_s16
#define arm_fully_connected_s8 muriscv_nn_fully_connected_s8
#define arm_max_pool_s16 muriscv_nn_max_pool_s16
#define arm_max_pool_s8 muriscv_nn_max_pool_s8
#define arm_maximum_s8 muriscv_nn_maximum_s8
#define arm_pad_s8 muriscv_nn_pad_s8
#define arm_softmax_s8 muriscv_nn_softmax_s8
#define arm_transpose_conv_s8_get_buffer_size muriscv_nn_transpose_conv_s8_get_buffer_size
#define arm_transpose_conv_wrapper_s8 muriscv_nn_transpose_conv_wrapper_s8
#define arm_vector_sum_s8 muriscv_nn_vector_sum_s8

#endif
