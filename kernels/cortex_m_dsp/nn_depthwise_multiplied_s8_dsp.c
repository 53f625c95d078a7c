/* DEPTHWISE_CONV_2D of any window and depth multiplier: an input channel's taps of three pixels,
 * widened, times its output channels (nn_dsp_matmul.h).
 *
 * Packed constants: as those of a convolution of as many groups as there are input channels, each
 * with one row of taps. Scratch: the widened taps, a pixel of padding, the places of the taps of
 * each pixel, filled up with padding to whole quads.
 */
#include "nn_dsp_matmul.h"
#include "nn_dsp_taps.h"
#include "nn_groups.h"

/* Quads of taps. */
static inline int32_t quads_of(const nn_conv_geometry *geometry) {
    return (geometry->kernel_h * geometry->kernel_w + 3) / 4;
}

int32_t nn_depthwise_multiplied_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                     const nn_view *in, const nn_view *out) {
    const int32_t quads = quads_of(geometry), pixels = nn_dsp_most_pixels(out->width);
    return nn_dsp_widened_bytes(pixels, quads) +
           nn_dsp_places_bytes(in->channels, 4 * pixels * quads);
}

/* Widens channel c of `quads` of taps of one of `pixels`. */
NN_OUTLINE void widen_places(uint32_t *to, int32_t pixels, const nn_dsp_place *places, int32_t c,
                             int32_t quads) {
    const nn_dsp_place base = (nn_dsp_place)c, *const end = places + 4 * quads;
    for (; places != end; places += 4, to += 2 * pixels) {
        const int32_t k0 = *nn_dsp_at_place(base, places[0]);
        const int32_t k1 = *nn_dsp_at_place(base, places[1]);
        const int32_t k2 = *nn_dsp_at_place(base, places[2]);
        const int32_t k3 = *nn_dsp_at_place(base, places[3]);
        to[0] = nn_pkhbt((uint32_t)k0, (uint32_t)k2);
        to[pixels] = nn_pkhbt((uint32_t)k1, (uint32_t)k3);
    }
}

void nn_depthwise_multiplied_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_groups_constants *head = (const nn_groups_constants *)constants;
    const int32_t quads = quads_of(g), multiplier = g->groups;
    const int32_t most = nn_dsp_most_pixels(window->x1 - window->x0);
    const nn_dsp_shape shape = {quads, out->pixel_stride, multiplier / 2, multiplier};
    uint32_t *const widened = nn_dsp_widened(scratch);
    const int8_t *const padding = (const int8_t *)(widened + 2 * most * quads);
    nn_dsp_place *const places = nn_dsp_fill_padding(
        widened + 2 * most * quads, in->channels,
        ((const nn_conv_constants *)(const void *)(head + 1))->input_zero_point);
    for (int32_t i = 0; i < 4 * most * quads; i++) {
        places[i] = nn_dsp_address(padding);
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        for (int32_t x = window->x0, pixels; x < window->x1; x += pixels) {
            int8_t *to = nn_out_pixel(out, y, x);
            const int8_t *block = (const int8_t *)(head + 1);
            pixels = nn_dsp_tile(nn_run(out, x, window->x1 - x));
            for (int32_t p = 0; p < pixels; p++) {
                nn_dsp_find_taps(g, in, top, (x + p) * g->stride_w - g->pad_left, padding,
                                 places + 4 * p * quads);
            }
            for (int32_t c = 0; c < in->channels; c++) {
                for (int32_t p = 0; p < pixels; p++) {
                    widen_places(widened + p, pixels, places + 4 * p * quads, c, quads);
                }
                nn_dsp_matmul((const nn_dsp_constants *)(const void *)block, pixels,
                              (const uint32_t *)scratch, &shape, to);
                block += head->block_bytes;
                to += multiplier;
            }
        }
    }
}
