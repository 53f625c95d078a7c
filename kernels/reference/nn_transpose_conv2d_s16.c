/* TRANSPOSE_CONV on int16: each output pixel gathers the inputs whose stamp covers it. */
#include "nn_wide.h"

/* Output channel's sum over the taps that meet an input; `bottom` and `right`: the output pixel in
 * the frame that the padding has not yet been cut from. */
static int64_t sum_taps(const nn_conv_geometry *g, const nn_view *in, const int8_t *weights,
                        int32_t bottom, int32_t right) {
    const int32_t inputs = in->channels;
    int64_t sum = 0;
    for (int32_t ky = bottom % g->stride_h; ky < g->kernel_h && ky <= bottom; ky += g->stride_h) {
        const int32_t y = (bottom - ky) / g->stride_h;
        if (y >= in->height) {
            continue;
        }
        for (int32_t kx = right % g->stride_w; kx < g->kernel_w && kx <= right; kx += g->stride_w) {
            const int32_t x = (right - kx) / g->stride_w;
            if (x < in->width) {
                const int8_t *w = weights + (ky * g->kernel_w + kx) * inputs;
                sum += nn_wide_dot(nn_wide_in(in, y, x), w, inputs);
            }
        }
    }
    return sum;
}

void nn_transpose_conv2d_s16(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const int32_t kernel_size = geometry->kernel_h * geometry->kernel_w * in->channels;
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_wide_channel *channel = (const nn_wide_channel *)block.channels;
            int16_t *pixel = nn_wide_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                const int64_t sum = sum_taps(geometry, in, block.weights + c * kernel_size,
                                             y + geometry->pad_top, x + geometry->pad_left);
                pixel[c] = nn_wide_output(sum, channel + c, &block.common);
            }
        }
    }
}
