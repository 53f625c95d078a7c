/* DEPTHWISE_CONV_2D, Helium: a channel's taps as dot products of 16 bytes. nn_mve_depthwise.h says
 * how. Where there is a distance between taps along a row, the stride is 1: outputs as far apart
 * are computed together, and everything else is as if the columns between them did not exist.
 *
 * constants: nn_mve_head; 16 zeros; then for each channel (the first output of every input, then
 * the second of each) its taps as words of four rows, and int32[4]. With g = ceil(kernel_h / 4),
 * word x * g + i has rows 4 i to 4 i + 3 of column x, zeros below the last row. A channel has n =
 * ceil(kernel_w * g / 4) vectors of four words, filled up with zeros. Its numbers are its bias, its
 * factor less 1 as a fraction of 2^31, its shift to the right (0 or less), and 0; in the mode
 * NN_MVE_GENERAL, which more than four vectors always have, bias, multiplier and shift as in
 * nn_channel.
 */
#include "nn_mve_depthwise.h"

int32_t nn_depthwise_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    const int32_t columns = nn_min(nn_mve_tile_columns(geometry), (out->width + 7) & ~7);
    const int32_t before_last = (columns - 1) * geometry->stride_w * nn_mve_row_groups(geometry);
    (void)in;
    return 16 + nn_mve_rows_bytes(geometry) +
           WORD_PITCH * (before_last + 4 * nn_mve_tap_vectors(geometry));
}

void nn_depthwise_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_mve_depthwise d = nn_mve_depthwise_open(geometry, constants, in, out, scratch);
    vstrbq_s8(d.zeros, vdupq_n_s8((int8_t)d.head->common.input_zero_point));
    nn_mve_depthwise_rows(&d, window);
}
