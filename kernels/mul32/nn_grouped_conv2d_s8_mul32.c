/* CONV_2D of several groups: each as a convolution of its own. */
#include "nn_groups.h"
#include "nn_mul32.h"

int32_t nn_grouped_conv2d_s8_mul32_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    return nn_groups_scratch(geometry, in, out, nn_conv2d_s8_mul32_scratch_bytes);
}

void nn_grouped_conv2d_s8_mul32(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    nn_groups_walk(geometry, constants, in, out, window, scratch, nn_conv2d_s8_mul32);
}
