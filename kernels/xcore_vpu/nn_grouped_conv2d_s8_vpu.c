/* CONV_2D of several groups: each as a convolution of its own. */
#include "nn_groups.h"
#include "nn_xcore_vpu.h"

static void one_group(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    nn_conv2d_s8_vpu(geometry, constants, in, out, window, scratch, 0);
}

void nn_grouped_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch) {
    nn_groups_walk(geometry, constants, in, out, window, scratch, one_group);
}
