/* DEPTHWISE_CONV_2D by CMSIS-NN's arm_depthwise_conv_wrapper_s8. */
#include "nn_cmsis_nn.h"

#define MVE_CHANNELS 124 /* that the library's Helium kernel takes at a time (CH_IN_BLOCK_MVE) */

int32_t nn_depthwise_conv2d_s8_cmsis_nn_scratch_bytes(const nn_conv_geometry *geometry,
                                                      const nn_view *in, const nn_view *out) {
    const nn_conv_geometry *g = geometry;
    const int32_t taps = g->kernel_h * g->kernel_w;
    if (in->channels != out->channels || g->dilation_h != 1 || g->dilation_w != 1) {
        return 0;
    }
    if (NN_CMSIS_NN_MVE) {
        return 4 * MVE_CHANNELS * taps;
    }
    if (g->kernel_h == 3 && g->kernel_w == 3 && g->pad_top <= 1 && g->pad_left <= 1) {
        return 0;
    }
    return 2 * in->channels * taps;
}

void nn_depthwise_conv2d_s8_cmsis_nn(const nn_conv_geometry *geometry, const void *constants,
                                     const nn_view *in, const nn_view *out, const nn_window *window,
                                     void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_cmsis_nn_filter f = nn_cmsis_nn_open(constants, out->channels);
    const cmsis_nn_dw_conv_params params = {
        .input_offset = -f.common->input_zero_point,
        .output_offset = f.common->output_zero_point,
        .ch_mult = g->groups,
        .stride = nn_cmsis_nn_tile(g->stride_h, g->stride_w),
        .padding = nn_cmsis_nn_tile(g->pad_top, g->pad_left),
        .dilation = nn_cmsis_nn_tile(g->dilation_h, g->dilation_w),
        .activation = {.min = f.common->clamp_min, .max = f.common->clamp_max},
    };
    const cmsis_nn_dims input = nn_cmsis_nn_dims(1, in->height, in->width, in->channels);
    const cmsis_nn_dims filter = nn_cmsis_nn_dims(1, g->kernel_h, g->kernel_w, out->channels);
    const cmsis_nn_dims bias = nn_cmsis_nn_dims(1, 1, 1, out->channels);
    const cmsis_nn_dims output = nn_cmsis_nn_dims(1, out->height, out->width, out->channels);
    const cmsis_nn_context context = nn_cmsis_nn_scratch(
        scratch, nn_depthwise_conv2d_s8_cmsis_nn_scratch_bytes(geometry, in, out),
        arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &input, &filter, &output));
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(arm_depthwise_conv_wrapper_s8(&context, &params, &f.factors, &input,
                                                        in->data, &filter, f.weights, &bias, f.bias,
                                                        &output, out->data));
}
