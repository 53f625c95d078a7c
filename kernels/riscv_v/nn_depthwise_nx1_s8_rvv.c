/* DEPTHWISE_CONV_2D with a kernel of one column over an input of one column: rows and columns
 * change places, so that four outputs are computed together. Constants: those of
 * nn_depthwise_conv2d_s8_rvv, as one column of taps has the order of one row. */
#include "nn_riscv_v.h"
#include "nn_turned.h"

void nn_depthwise_nx1_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_conv_geometry row = nn_turned_geometry(geometry);
    const nn_view from = nn_turned(in), to = nn_turned(out);
    const nn_window part = nn_turned_window(window);
    nn_depthwise_conv2d_s8_rvv(&row, constants, &from, &to, &part, scratch);
}
