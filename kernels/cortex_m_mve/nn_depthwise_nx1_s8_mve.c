/* DEPTHWISE_CONV_2D with a kernel of one column and two to sixteen rows, stride 1, over an input of
 * one column, Helium: rows and columns exchanged, as a kernel of one row. Rows that meet padding
 * are computed one by one. Constants: those of nn_depthwise_conv2d_s8_mve. */
#include "nn_mve_depthwise_line.h"
#include "nn_turned.h"

#define FEW 4 /* rows for which one after the other is as fast */

int32_t nn_depthwise_nx1_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    (void)out;
    return nn_mve_line_scratch(geometry->kernel_h);
}

void nn_depthwise_nx1_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const int32_t taps = geometry->kernel_h, top = geometry->pad_top;
    const nn_conv_geometry row = {1, taps, 1, 1, 1, 1, 0, top, 1};
    const nn_view from = nn_turned(in), to = nn_turned(out);
    const int32_t first = nn_clamp(top, window->y0, window->y1);
    const int32_t last =
        nn_clamp(in->height - 4 * nn_mve_line_words(taps) + top + 1, first, window->y1);
    nn_window above = *window, below = *window;
    const nn_window inside = {0, 1, first, last};
    above.y1 = first;
    below.y0 = last;
    if (last - first < FEW) {
        above.y1 = window->y1;
    } else {
        nn_depthwise_1xn_s8_mve(&row, constants, &from, &to, &inside, scratch);
        nn_depthwise_conv2d_s8_mve(geometry, constants, in, out, &below, scratch);
    }
    nn_depthwise_conv2d_s8_mve(geometry, constants, in, out, &above, scratch);
}
