/* TRANSPOSE_CONV: each phase of its outputs as a convolution. */
#include "nn_phases.h"
#include "nn_riscv_v.h"

#define PIXELS 4 /* whose taps are in scratch */

int32_t nn_transpose_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    (void)out;
    return nn_phases_patch_bytes(geometry, in, PIXELS);
}

void nn_transpose_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    nn_phases_walk(geometry, constants, in, out, window, scratch, nn_conv2d_s8_rvv);
}
