/* CONV_2D with a kernel of one column over an input of one column, Helium: rows and columns change
 * places, so that neighbours make pairs. Constants: those of nn_conv2d_s8_mve, as one column of
 * taps has the order of one row. */
#include "nn_cortex_m_mve.h"
#include "nn_turned.h"

int32_t nn_conv2d_column_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    return nn_conv2d_s8_mve_scratch_bytes(geometry, in, out);
}

void nn_conv2d_column_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_conv_geometry row = nn_turned_geometry(geometry);
    const nn_view from = nn_turned(in), to = nn_turned(out);
    const nn_window part = nn_turned_window(window);
    nn_conv2d_s8_mve(&row, constants, &from, &to, &part, scratch);
}
