/* TRANSPOSE_CONV: each output pixel gathers the inputs whose stamp covers it. */
#include "nn_conv.h"

/* Output channel's sum of w * (x - zero point), modulo 2^32, over the taps that meet an input;
 * `bottom` and `right`: the output pixel in the frame that the padding has not yet been cut from.
 */
static int32_t sum_taps(const nn_conv_geometry *g, const nn_view *in, const int8_t *weights,
                        int32_t zero_point, int32_t bottom, int32_t right) {
    const int32_t inputs = in->channels;
    int32_t sum = 0;
    for (int32_t ky = bottom % g->stride_h; ky < g->kernel_h && ky <= bottom; ky += g->stride_h) {
        const int32_t y = (bottom - ky) / g->stride_h;
        if (y >= in->height) {
            continue;
        }
        for (int32_t kx = right % g->stride_w; kx < g->kernel_w && kx <= right; kx += g->stride_w) {
            const int32_t x = (right - kx) / g->stride_w;
            if (x < in->width) {
                const int8_t *values = nn_pixel(in, y, x);
                const int8_t *w = weights + (ky * g->kernel_w + kx) * inputs;
                for (int32_t i = 0; i < inputs; i++) {
                    sum = nn_wrapping_add(sum, (values[i] - zero_point) * w[i]);
                }
            }
        }
    }
    return sum;
}

void nn_transpose_conv2d_s8(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    const int32_t kernel_size = geometry->kernel_h * geometry->kernel_w * in->channels;
    const int32_t zero_point = block.common.input_zero_point;
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *pixel = nn_out_pixel(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                const int32_t sum =
                    sum_taps(geometry, in, block.weights + c * kernel_size, zero_point,
                             y + geometry->pad_top, x + geometry->pad_left);
                pixel[c] = nn_conv_output(sum, block.channels + c, &block.common);
            }
        }
    }
}
