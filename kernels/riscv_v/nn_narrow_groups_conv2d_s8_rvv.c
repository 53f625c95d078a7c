/* CONV_2D and DEPTHWISE_CONV_2D in groups so narrow that a vector holds several. */
#include "nn_riscv_v.h"
#include "nn_rvv_rows.h"

NN_RVV_TILES(NN_RVV_GATHER)

void nn_narrow_groups_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch) {
    (void)scratch;
    nn_rvv_walk(geometry, constants, in, out, window, &tiles);
}
