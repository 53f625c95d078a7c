/* DEPTHWISE_CONV_2D of any kernel size, stride and dilation, depth multiplier 1. */
#include "nn_riscv_v.h"
#include "nn_rvv_rows.h"

NN_RVV_TILES(NN_RVV_DEPTHWISE)

void nn_depthwise_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    (void)scratch;
    nn_rvv_walk(geometry, constants, in, out, window, &tiles);
}
