/* DEPTHWISE_CONV_2D with a kernel of one column of at most seven rows over an input of one column:
 * rows and columns change places. */
#include "nn_riscv.h"
#include "nn_turned.h"

void nn_depthwise_nx1_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch) {
    const nn_conv_geometry row = nn_turned_geometry(geometry);
    const nn_view from = nn_turned(in), to = nn_turned(out);
    const nn_window part = nn_turned_window(window);
    if (row.kernel_w <= 3) {
        nn_depthwise_w3_s8_riscv(&row, constants, &from, &to, &part, scratch);
    } else if (row.kernel_w <= 5) {
        nn_depthwise_w5_s8_riscv(&row, constants, &from, &to, &part, scratch);
    } else {
        nn_depthwise_w7_s8_riscv(&row, constants, &from, &to, &part, scratch);
    }
}
