/* What the library is told of a layer, and how much scratch it says that it wants for that.
 *
 * The planner asks with this very code, compiled for the machine that plans together with the
 * library's own size functions, of which there is one for each kind of core. So what a plan gives
 * is what the library that is linked asks for, whatever its version.
 */
#ifndef NN_CMSIS_NN_ASK_H
#define NN_CMSIS_NN_ASK_H

#include "arm_nnfunctions.h"
#include "nn.h"

/* Which of the library's implementations the compiler selects; defined where the planner asks. */
#ifndef NN_CMSIS_NN_MVE
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE
#define NN_CMSIS_NN_MVE 1
#else
#define NN_CMSIS_NN_MVE 0
#endif
#define NN_CMSIS_NN_BYTES(function) function##_get_buffer_size
#elif NN_CMSIS_NN_MVE
#define NN_CMSIS_NN_BYTES(function) function##_get_buffer_size_mve
#else
#define NN_CMSIS_NN_BYTES(function) function##_get_buffer_size_dsp
#endif

/* Of an operator's tensors, without their data. */
typedef struct {
    int32_t height, width, channels;
} nn_cmsis_nn_shape;

static inline cmsis_nn_dims nn_cmsis_nn_dims(int32_t n, int32_t h, int32_t w, int32_t c) {
    const cmsis_nn_dims dims = {.n = n, .h = h, .w = w, .c = c};
    return dims;
}

static inline cmsis_nn_tile nn_cmsis_nn_tile(int32_t h, int32_t w) {
    const cmsis_nn_tile tile = {.w = w, .h = h};
    return tile;
}

/* A convolution; offsets and limits of the activation are not filled in. */
typedef struct {
    cmsis_nn_conv_params params;
    cmsis_nn_dims input, filter, bias, output;
} nn_cmsis_nn_conv;

/* The library's Helium kernel for images of one row is exact without padding, and with stride 1
 * where there is as much padding on the left as on the right, or one column less, and at least as
 * many outputs as meet padding. With larger strides its last output is wrong, and elsewhere it
 * fails. The general kernel can do all: it serves images of several rows, so such an image is one
 * of two rows then, of which the output needs the first. */
static inline int nn_cmsis_nn_row_is_strange(const nn_conv_geometry *g, nn_cmsis_nn_shape in,
                                             nn_cmsis_nn_shape out) {
    const int32_t stride = g->stride_w, left = g->pad_left;
    const int32_t pads = (out.width - 1) * stride + g->kernel_w - in.width, odd = pads % 2;
    const int32_t right = left + odd;
    const int32_t met = (left != 0 ? (left + stride - 1) / stride : 0) +
                        (right != 0 ? (right > 0 ? (right + stride - 1) / stride : 1) : 0);
    return NN_CMSIS_NN_MVE && in.height == 1 && g->kernel_h == 1 && (g->kernel_w > 1 || left > 0) &&
           (2 * left + odd != pads || met > out.width || (stride > 1 && pads != 0));
}

static inline nn_cmsis_nn_conv nn_cmsis_nn_open_conv(const nn_conv_geometry *g,
                                                     nn_cmsis_nn_shape in, nn_cmsis_nn_shape out) {
    const int32_t rows = nn_cmsis_nn_row_is_strange(g, in, out) ? 2 : in.height;
    const nn_cmsis_nn_conv conv = {
        .params = {.stride = nn_cmsis_nn_tile(g->stride_h, g->stride_w),
                   .padding = nn_cmsis_nn_tile(g->pad_top, g->pad_left),
                   .dilation = nn_cmsis_nn_tile(g->dilation_h, g->dilation_w)},
        .input = nn_cmsis_nn_dims(1, rows, in.width, in.channels),
        .filter = nn_cmsis_nn_dims(out.channels, g->kernel_h, g->kernel_w, in.channels),
        .bias = nn_cmsis_nn_dims(1, 1, 1, out.channels),
        .output = nn_cmsis_nn_dims(1, out.height, out.width, out.channels),
    };
    return conv;
}

static inline int32_t nn_cmsis_nn_conv_bytes(const nn_cmsis_nn_conv *conv) {
    return NN_CMSIS_NN_BYTES(arm_convolve_wrapper_s8)(&conv->params, &conv->input, &conv->filter,
                                                      &conv->output);
}

/* A depthwise convolution, likewise. */
typedef struct {
    cmsis_nn_dw_conv_params params;
    cmsis_nn_dims input, filter, bias, output;
} nn_cmsis_nn_depthwise;

static inline nn_cmsis_nn_depthwise
nn_cmsis_nn_open_depthwise(const nn_conv_geometry *g, nn_cmsis_nn_shape in, nn_cmsis_nn_shape out) {
    const nn_cmsis_nn_depthwise conv = {
        .params = {.ch_mult = out.channels / in.channels,
                   .stride = nn_cmsis_nn_tile(g->stride_h, g->stride_w),
                   .padding = nn_cmsis_nn_tile(g->pad_top, g->pad_left),
                   .dilation = nn_cmsis_nn_tile(g->dilation_h, g->dilation_w)},
        .input = nn_cmsis_nn_dims(1, in.height, in.width, in.channels),
        .filter = nn_cmsis_nn_dims(1, g->kernel_h, g->kernel_w, out.channels),
        .bias = nn_cmsis_nn_dims(1, 1, 1, out.channels),
        .output = nn_cmsis_nn_dims(1, out.height, out.width, out.channels),
    };
    return conv;
}

static inline int32_t nn_cmsis_nn_depthwise_bytes(const nn_cmsis_nn_depthwise *conv) {
    return NN_CMSIS_NN_BYTES(arm_depthwise_conv_wrapper_s8)(&conv->params, &conv->input,
                                                            &conv->filter, &conv->output);
}

static inline int32_t nn_cmsis_nn_avg_pool_bytes(nn_cmsis_nn_shape in, nn_cmsis_nn_shape out) {
    return NN_CMSIS_NN_BYTES(arm_avgpool_s8)(out.width, in.channels);
}

#endif
