/* DEPTHWISE_CONV_2D with a kernel of one column and two to sixteen rows, over an input of one
 * column, Helium: rows and columns exchanged, as a kernel of one row. Constants: those of
 * nn_depthwise_conv2d_s8_mve. */
#include "nn_mve_depthwise_line.h"
#include "nn_turned.h"

int32_t nn_depthwise_nx1_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    (void)out;
    return nn_mve_line_scratch(geometry->kernel_h);
}

void nn_depthwise_nx1_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_conv_geometry row = nn_turned_geometry(geometry);
    const nn_view from = nn_turned(in), to = nn_turned(out);
    const nn_window part = nn_turned_window(window);
    nn_depthwise_1xn_s8_mve(&row, constants, &from, &to, &part, scratch);
}
