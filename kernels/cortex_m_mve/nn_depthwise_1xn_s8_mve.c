/* DEPTHWISE_CONV_2D with a kernel of one row and five to eight columns, Helium: as one column of so
 * many rows, which makes whole words of its taps.
 *
 * The columns of an input row are taken to be rows, each one pixel behind the one before. Outputs
 * side by side are then columns of an output row. Where a tap meets padding, or a ring of columns
 * wraps around, outputs are computed one by one. Constants: those of such a kernel, as
 * nn_depthwise_conv2d_s8_mve.c says.
 */
#include "nn_mve.h"

static inline nn_conv_geometry turned(const nn_conv_geometry *g, int32_t first) {
    const nn_conv_geometry one_column = {g->kernel_w, 1, 1, 1, g->dilation_w, 1, -first, 0, 1};
    return one_column;
}

/* Outputs from column x on that can be computed together; `left`: where the first one's taps begin.
 */
static int32_t alike(const nn_conv_geometry *g, const nn_view *in, const nn_view *out, int32_t left,
                     int32_t x, int32_t end) {
    const int32_t taps = (g->kernel_w - 1) * g->dilation_w;
    if (left < 0 || left + taps >= in->width) {
        return 1;
    }
    const int32_t room = nn_run(in, left, in->width - left) - taps;
    return room < 1 ? 1 : nn_min((room - 1) / g->stride_w + 1, nn_run(out, x, end - x));
}

int32_t nn_depthwise_1xn_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    const nn_conv_geometry g = turned(geometry, 0);
    return nn_depthwise_conv2d_s8_mve_scratch_bytes(&g, in, out);
}

void nn_depthwise_1xn_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_conv_geometry *g = geometry;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t row = y * g->stride_h - g->pad_top;
        const int inside = row >= 0 && row < in->height;
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_conv_geometry as_column = turned(g, left - in->x0);
            count = alike(g, in, out, left, x, window->x1);
            const nn_view columns = {inside ? nn_row(in, row) : in->data,
                                     in->pixel_stride,
                                     g->stride_w * in->pixel_stride,
                                     in->ring_cols,
                                     count,
                                     0,
                                     inside ? in->width - in->x0 : 0,
                                     count,
                                     in->channels};
            const nn_view results = {nn_out_pixel(out, y, x),
                                     0,
                                     out->pixel_stride,
                                     1,
                                     count,
                                     0,
                                     1,
                                     count,
                                     out->channels};
            const nn_window all = {0, 1, 0, count};
            nn_depthwise_conv2d_s8_mve(&as_column, constants, &columns, &results, &all, scratch);
        }
    }
}
