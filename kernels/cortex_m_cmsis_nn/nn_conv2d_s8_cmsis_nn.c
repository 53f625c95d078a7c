/* CONV_2D without groups by CMSIS-NN's arm_convolve_wrapper_s8. */
#include "nn_cmsis_nn.h"

int32_t nn_conv2d_s8_cmsis_nn_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                            const nn_view *out) {
    const nn_conv_geometry *g = geometry;
    const int32_t taps = g->kernel_h * g->kernel_w * in->channels;
    const int undilated = g->dilation_h == 1 && g->dilation_w == 1;
    (void)out;
    if (g->kernel_h == 1 && g->kernel_w == 1 && g->pad_top == 0 && g->pad_left == 0 && undilated) {
        return 0;
    }
    if (!NN_CMSIS_NN_MVE) {
        return 4 * ((taps + 3) & ~3); /* two pixels' inputs as int16 */
    }
    if (in->height == 1 && g->kernel_h == 1 && g->dilation_w == 1 &&
        g->stride_w * in->channels % 4 == 0) {
        return 0;
    }
    return 4 * ((taps + 7) & ~7); /* four pixels' inputs */
}

void nn_conv2d_s8_cmsis_nn(const nn_conv_geometry *geometry, const void *constants,
                           const nn_view *in, const nn_view *out, const nn_window *window,
                           void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_cmsis_nn_filter f = nn_cmsis_nn_open(constants, out->channels);
    const cmsis_nn_conv_params params = {
        .input_offset = -f.common->input_zero_point,
        .output_offset = f.common->output_zero_point,
        .stride = nn_cmsis_nn_tile(g->stride_h, g->stride_w),
        .padding = nn_cmsis_nn_tile(g->pad_top, g->pad_left),
        .dilation = nn_cmsis_nn_tile(g->dilation_h, g->dilation_w),
        .activation = {.min = f.common->clamp_min, .max = f.common->clamp_max},
    };
    const cmsis_nn_dims input = nn_cmsis_nn_dims(1, in->height, in->width, in->channels);
    const cmsis_nn_dims filter =
        nn_cmsis_nn_dims(out->channels, g->kernel_h, g->kernel_w, in->channels);
    const cmsis_nn_dims bias = nn_cmsis_nn_dims(1, 1, 1, out->channels);
    const cmsis_nn_dims output = nn_cmsis_nn_dims(1, out->height, out->width, out->channels);
    const cmsis_nn_context context = nn_cmsis_nn_scratch(
        scratch, nn_conv2d_s8_cmsis_nn_scratch_bytes(geometry, in, out),
        arm_convolve_wrapper_s8_get_buffer_size(&params, &input, &filter, &output));
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(arm_convolve_wrapper_s8(&context, &params, &f.factors, &input, in->data,
                                                  &filter, f.weights, &bias, f.bias, &output,
                                                  out->data));
}
