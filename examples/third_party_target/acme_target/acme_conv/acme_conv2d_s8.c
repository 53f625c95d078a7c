/* CONV_2D: the sums of all output channels grow together, one input at a time. */
#include "acme_conv.h"

#include "nn_conv.h"

/* Adds one input's products: `weights` has those of all output channels. */
static void add(int32_t *sums, int32_t value, const int8_t *weights, int32_t outputs) {
    for (int32_t c = 0; c < outputs; c++) {
        sums[c] += value * weights[c];
    }
}

/* Adds one tap of a pixel; NULL: it lies in the padding, which holds the zero point. */
static void add_tap(int32_t *sums, const int8_t *pixel, int32_t zero_point, const int8_t *weights,
                    int32_t inputs, int32_t outputs) {
    for (int32_t i = 0; i < inputs; i++, weights += outputs) {
        add(sums, pixel == NULL ? zero_point : pixel[i], weights, outputs);
    }
}

static int inside(int32_t place, int32_t size) {
    return place >= 0 && place < size;
}

void acme_conv2d_s8(const nn_view *in, const nn_view *out, const nn_window *window,
                    const nn_conv_geometry *geometry, const void *constants, void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    const nn_conv_geometry g = *geometry;
    const int32_t outputs = out->channels, tap = in->channels * outputs;
    int32_t *sums = scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *weights = block.weights;
            int8_t *made = nn_out_pixel(out, y, x);
            for (int32_t c = 0; c < outputs; c++) {
                sums[c] = 0;
            }
            for (int32_t ky = 0; ky < g.kernel_h; ky++) {
                const int32_t row = y * g.stride_h - g.pad_top + ky * g.dilation_h;
                for (int32_t kx = 0; kx < g.kernel_w; kx++, weights += tap) {
                    const int32_t column = x * g.stride_w - g.pad_left + kx * g.dilation_w;
                    const int meets = inside(row, in->height) && inside(column, in->width);
                    add_tap(sums, meets ? nn_pixel(in, row, column) : NULL,
                            block.common.input_zero_point, weights, in->channels, outputs);
                }
            }
            for (int32_t c = 0; c < outputs; c++) {
                made[c] = nn_conv_output(sums[c], block.channels + c, &block.common);
            }
        }
    }
}
