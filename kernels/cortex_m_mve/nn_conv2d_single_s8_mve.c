/* CONV_2D without groups, Helium: one pixel after the other, so that scratch has the inputs of one.
 * Constants: those of nn_conv2d_s8_mve.c. */
#include "nn_mve_conv.h"

int32_t nn_conv2d_single_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    const int32_t size = geometry->kernel_h * geometry->kernel_w * in->channels;
    (void)out;
    return (size + 15) & ~15;
}

void nn_conv2d_single_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    nn_mve_patches patches;
    nn_mve_pairs p;
    nn_mve_set_patches(&patches, geometry, in,
                       ((const nn_mve_head *)constants)->common.input_zero_point);
    nn_mve_open_pairs(&p, constants, geometry->kernel_h * patches.segment, out, 0);
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_mve_find_rows(&patches, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            p.out = nn_out_pixel(out, y, x);
            p.x0 = (int8_t *)scratch;
            nn_mve_gather(&patches, x * geometry->stride_w - geometry->pad_left, (int8_t *)scratch);
            nn_mve_run_single(&p);
        }
    }
}
