/* Convolutions without groups: a pixel's taps are collected, or read in place. */
#include "nn_vpu16.h"
#include "nn_xcore_vpu16.h"

/* The taps of a kernel row at columns from x on, some of which may be padding. */
static void row_taps(nn_vpu *v, const nn_conv_geometry *g, const nn_view *in, int32_t y, int32_t x,
                     int32_t zero_point, int8_t *to) {
    const int32_t channels = in->channels;
    const int joined = g->dilation_w == 1 && nn_dense(in) && x >= 0 && x + g->kernel_w <= in->width;
    NN_VPU_SCALAR(8);
    if (y >= 0 && y < in->height && joined && nn_run(in, x, g->kernel_w) == g->kernel_w) {
        nn_vpu16_copy(v, to, nn_pixel(in, y, x), g->kernel_w * channels);
        return;
    }
    for (int32_t k = 0; k < g->kernel_w; k++, x += g->dilation_w, to += channels) {
        NN_VPU_SCALAR(8);
        if (y >= 0 && y < in->height && x >= 0 && x < in->width) {
            nn_vpu16_copy(v, to, nn_pixel(in, y, x), channels);
            continue;
        }
        NN_VPU_SCALAR(2 * channels);
        for (int32_t c = 0; c < channels; c++) {
            to[c] = (int8_t)zero_point;
        }
    }
}

void nn_conv2d_s8_vpu16(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t zero_point = ((const nn_conv_constants *)constants)->input_zero_point;
    const int32_t row = g->kernel_w * in->channels;
    int8_t *patch = (int8_t *)scratch;
    nn_vpu v = {0};
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            for (int32_t k = 0; k < g->kernel_h; k++) {
                row_taps(&v, g, in, top + k * g->dilation_h, left, zero_point, patch + k * row);
            }
            const nn_vpu16_taps taps = nn_vpu16_taps_of(&v, patch, g->kernel_h * row);
            nn_vpu16_pixel(&v, constants, &taps, 0, nn_pixel(out, y, x), out->channels);
        }
    }
}

void nn_conv2d_1x1_s8_vpu16(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch) {
    nn_vpu v = {0};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *pixel = nn_pixel(in, y * geometry->stride_h, x * geometry->stride_w);
            const nn_vpu16_taps taps = nn_vpu16_taps_of(&v, pixel, in->channels);
            nn_vpu16_pixel(&v, constants, &taps, 0, nn_pixel(out, y, x), out->channels);
        }
    }
}
