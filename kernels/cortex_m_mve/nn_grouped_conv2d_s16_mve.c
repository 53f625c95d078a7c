/* CONV_2D on int16 of several groups: each as a convolution of its own. */
#include "nn_cortex_m_mve.h"
#include "nn_groups.h"

void nn_grouped_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch) {
    nn_groups_walk_of(2, geometry, constants, in, out, window, scratch, nn_conv2d_s16_mve);
}
