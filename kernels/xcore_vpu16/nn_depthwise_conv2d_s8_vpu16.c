/* Depthwise convolutions with one output a channel: 16 channels of a tap at once. */
#include "nn_vpu16.h"
#include "nn_xcore_vpu16.h"

/* The accumulators of the group's channels, from the first one on, of a pixel's window. */
static void accumulate(nn_vpu *v, const nn_conv_geometry *g, const nn_view *in, int32_t top,
                       int32_t left, int32_t first, const nn_vpu16_group *group,
                       const int8_t *padding) {
    const int8_t *weights = group->weights;
    int8_t moved[NN_VPU_BYTES] NN_VPU_ALIGNED;
    for (int32_t i = 0, y = top; i < g->kernel_h; i++, y += g->dilation_h) {
        for (int32_t k = 0, x = left; k < g->kernel_w; k++, x += g->dilation_w) {
            const int8_t *tap = padding;
            NN_VPU_SCALAR(3); /* where the tap is moves on with the window, a branch */
            if (y >= 0 && y < in->height && x >= 0 && x < in->width) {
                tap = nn_pixel(in, y, x) + first;
                if (group->lanes < NN_VPU_ACC || !nn_vpu16_aligned(tap)) {
                    nn_vpu16_copy(v, moved, tap, group->lanes);
                    tap = moved;
                }
            }
            nn_vpu_vldc(v, weights);
            nn_vpu_vlmacc(v, tap);
            NN_VPU_MAC(2);
            weights += NN_VPU_ACC;
        }
    }
}

void nn_depthwise_conv2d_s8_vpu16(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_conv_constants *common = (const nn_conv_constants *)constants;
    const int8_t *weights = nn_vpu16_weights(constants, out->channels);
    int8_t padding[NN_VPU_ACC] NN_VPU_ALIGNED;
    nn_vpu v = {0};
    (void)scratch;
    for (int32_t i = 0; i < NN_VPU_ACC; i++) {
        padding[i] = (int8_t)common->input_zero_point;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *to = nn_pixel(out, y, x);
            for (int32_t c = 0; c < out->channels; c += NN_VPU_ACC) {
                nn_vpu16_group group = nn_vpu16_open(constants, c, out->channels);
                group.weights = weights + c * g->kernel_h * g->kernel_w;
                nn_vpu16_begin(&v, &group);
                accumulate(&v, g, in, y * g->stride_h - g->pad_top, x * g->stride_w - g->pad_left,
                           c, &group, padding);
                nn_vpu16_output(&v, &group, common, 0, to + c);
            }
        }
    }
}
