/* Kernels of float32, for operators that a converter left in floats; `nn.h` says how kernels see
 * tensors. Strides of views are bytes, also here. */
#ifndef NN_F32_H
#define NN_F32_H

#include "nn.h"

/* The ends of a fused activation; without one, of the finite numbers. */
typedef struct {
    float low, high;
} nn_float_limits;

/* The alpha of LEAKY_RELU, the beta of SOFTMAX. */
typedef struct {
    float factor;
} nn_float_factor;

/* The result where the first operand is less (bit 0), equal (bit 1), greater (bit 2), and where one
 * of them is NaN (bit 3). */
typedef struct {
    int32_t truth;
} nn_float_truth;

typedef struct {
    float scale;
    int32_t zero_point;
} nn_float_scale;

/* Whether GELU is approximated with tanh; whether a CAST is to truth values. */
typedef struct {
    int32_t set;
} nn_float_flag;

/* constants of layers: nn_float_head, then a bias for each output channel, then (16-byte aligned)
 * the weights: conv O H W I, depthwise H W O, fully connected O I. */
typedef struct {
    float low, high;
    int32_t reserved[2];
} nn_float_head;

/* constants: nn_float_limits */
void nn_add_f32(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_sub_f32(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_mul_f32(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_div_f32(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);

void nn_maximum_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window);
void nn_minimum_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window);
void nn_squared_difference_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                               const nn_window *window);
void nn_prelu_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window);
void nn_pow_f32(const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);

/* constants: nn_float_truth */
void nn_compare_f32(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_select_f32(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                   const nn_window *window);

void nn_abs_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_neg_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_square_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_sqrt_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_rsqrt_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_relu_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_relu6_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_relu_n1_to_1_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_relu_0_to_1_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_hard_swish_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_exp_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_log_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_tanh_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_logistic_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_erf_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_elu_f32(const nn_view *in, const nn_view *out, const nn_window *window);
/* constants: nn_float_flag */
void nn_gelu_f32(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window);
/* constants: nn_float_factor */
void nn_leaky_relu_f32(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_softmax_f32(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window);

/* Over the channels of each pixel. */
void nn_l2_normalization_f32(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_log_softmax_f32(const nn_view *in, const nn_view *out, const nn_window *window);

void nn_sum_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_mean_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_prod_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_max_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_min_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);

/* constants: nn_float_limits */
void nn_avg_pool_f32(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                     const nn_view *out, const nn_window *window);
void nn_max_pool_f32(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                     const nn_view *out, const nn_window *window);

/* constants: nn_float_head */
void nn_conv2d_f32(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                   const nn_view *out, const nn_window *window);
void nn_depthwise_conv2d_f32(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window);
void nn_fully_connected_f32(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window);
void nn_batch_matmul_f32(const nn_matmul_geometry *geometry, const nn_view *in1, const nn_view *in2,
                         const nn_view *out);

/* constants: nn_float_scale */
void nn_quantize_f32_s8(const void *constants, const nn_view *in, const nn_view *out,
                        const nn_window *window);
void nn_quantize_f32_s16(const void *constants, const nn_view *in, const nn_view *out,
                         const nn_window *window);
void nn_dequantize_s8_f32(const void *constants, const nn_view *in, const nn_view *out,
                          const nn_window *window);
void nn_dequantize_s16_f32(const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window);

/* CAST; constants: nn_float_scale, nn_float_flag. nn_dequantize_s8_f32 and nn_dequantize_s16_f32
 * serve CAST too. */
void nn_cast_s32_f32(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window);
void nn_cast_f32_s8(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window);
void nn_cast_f32_s16(const nn_view *in, const nn_view *out, const nn_window *window);
void nn_cast_f32_s32(const nn_view *in, const nn_view *out, const nn_window *window);

void nn_resize_nearest_f32(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window);
void nn_resize_bilinear_f32(const nn_resize_geometry *geometry, const nn_view *in,
                            const nn_view *out, const nn_window *window);

/* As their namesakes of bytes; constants: nn_pad_constants, whose value is the float's bits. */
void nn_fill_f32(const void *constants, int8_t *out, int32_t bytes);
void nn_concat_f32(const nn_view *in, const nn_view *out, const nn_window *window, int32_t channel);

#endif
