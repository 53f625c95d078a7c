/* DEPTHWISE_CONV_2D by CMSIS-NN's arm_depthwise_conv_wrapper_s8. */
#include "nn_cmsis_nn.h"

int32_t nn_depthwise_conv2d_s8_cmsis_nn_scratch_bytes(const nn_conv_geometry *geometry,
                                                      const nn_view *in, const nn_view *out) {
    const nn_cmsis_nn_depthwise conv =
        nn_cmsis_nn_open_depthwise(geometry, nn_cmsis_nn_shape_of(in), nn_cmsis_nn_shape_of(out));
    return nn_cmsis_nn_depthwise_bytes(&conv);
}

void nn_depthwise_conv2d_s8_cmsis_nn(const nn_conv_geometry *geometry, const void *constants,
                                     const nn_view *in, const nn_view *out, const nn_window *window,
                                     void *scratch, int32_t scratch_bytes) {
    const nn_cmsis_nn_filter f = nn_cmsis_nn_open(constants, out->channels);
    nn_cmsis_nn_depthwise c =
        nn_cmsis_nn_open_depthwise(geometry, nn_cmsis_nn_shape_of(in), nn_cmsis_nn_shape_of(out));
    c.params.input_offset = -f.common->input_zero_point;
    c.params.output_offset = f.common->output_zero_point;
    c.params.activation.min = f.common->clamp_min;
    c.params.activation.max = f.common->clamp_max;
    const cmsis_nn_context context =
        nn_cmsis_nn_scratch(scratch, scratch_bytes, nn_cmsis_nn_depthwise_bytes(&c));
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(arm_depthwise_conv_wrapper_s8(&context, &c.params, &f.factors, &c.input,
                                                        in->data, &c.filter, f.weights, &c.bias,
                                                        f.bias, &c.output, nn_out_data(out)));
}
