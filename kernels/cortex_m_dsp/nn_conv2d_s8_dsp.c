/* CONV_2D of any kernel size, three pixels at a time. */
#include "nn_dsp_conv.h"

int32_t nn_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    const nn_dsp_division d = nn_dsp_divide(geometry, in);
    const int32_t pixels = nn_dsp_most_pixels(out->width);
    return nn_dsp_widened_bytes(pixels, d.quads) + 4 * pixels * d.rest_quads + d.row_bytes;
}

void nn_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_dsp_constants *c = (const nn_dsp_constants *)constants;
    const int32_t most = nn_dsp_most_pixels(window->x1 - window->x0);
    nn_dsp_layer l;
    nn_dsp_shape shape;
    nn_dsp_open_layer(&l, g, c->common.input_zero_point, in, most, scratch);
    shape = nn_dsp_shape_for(l.taps.quads, out);
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_dsp_find_input_rows(&l, y * g->stride_h - g->pad_top);
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t pixels = nn_dsp_tile(nn_run(out, x, window->x1 - x));
            nn_dsp_widen_inputs(&l, pixels, x * g->stride_w - g->pad_left);
            nn_dsp_matmul(c, pixels, (uint32_t *)scratch, &shape, nn_out_pixel(out, y, x));
            x += pixels;
        }
    }
}
