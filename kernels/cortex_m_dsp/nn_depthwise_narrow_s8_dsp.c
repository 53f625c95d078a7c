/* DEPTHWISE_CONV_2D of any window, of fewer than four channels: what a tile of outputs meets is
 * copied to rows of four channels, padding included, and computed by the kernel of four.
 *
 * Packed constants: that kernel's; channels that are not there have weights of zero. Scratch: that
 * kernel's, the rows of the tile, its outputs.
 */
#include "nn_dsp.h"

#define TILE 16 /* outputs along a row */

/* Columns of input for so many outputs. */
static inline int32_t columns_for(const nn_conv_geometry *g, int32_t outputs) {
    return (outputs - 1) * g->stride_w + (g->kernel_w - 1) * g->dilation_w + 1;
}

/* Bytes that the kernel of four channels needs. */
static int32_t kernel_bytes(const nn_conv_geometry *geometry) {
    const nn_view four = {.channels = NN_DSP_BLOCK};
    return nn_depthwise_conv2d_s8_dsp_scratch_bytes(geometry, &four, &four);
}

int32_t nn_depthwise_narrow_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    const int32_t tile = nn_min(out->width, TILE);
    (void)in;
    return kernel_bytes(geometry) +
           NN_DSP_BLOCK * (geometry->kernel_h * columns_for(geometry, tile) + tile);
}

/* Copies `count` columns of a row from column `left` on to four channels. */
NN_OUTLINE void widen_row(uint32_t *to, const nn_view *in, const int8_t *row, int32_t left,
                          int32_t count, uint32_t padding) {
    const nn_taps taps = nn_valid_taps(left, in->width, row == NULL ? 0 : count, 1);
    const int32_t channels = in->channels;
    int32_t i = 0;
    for (; i < taps.first; i++) {
        to[i] = padding;
    }
    while (i < taps.end) {
        const int8_t *from = row + nn_column(in, left + i) * in->pixel_stride;
        const int32_t end = i + nn_run(in, left + i, taps.end - i);
        const int8_t *const last =
            from + (end - 1 - i) * in->pixel_stride + channels - NN_DSP_BLOCK;
        for (; from <= last; i++, from += in->pixel_stride) { /* the next pixels lie behind it */
            to[i] = nn_load4(from);
        }
        for (; i < end; i++, from += in->pixel_stride) {
            to[i] = nn_load_tail(from, channels);
        }
    }
    for (; i < count; i++) {
        to[i] = padding;
    }
}

/* The outputs of a tile, one behind the other again. */
NN_OUTLINE void narrow(int8_t *out, int32_t step, const int8_t *from, int32_t count,
                       int32_t channels) {
    for (; count > 0; count--, out += step, from += NN_DSP_BLOCK) {
        out[0] = from[0];
        if (channels > 1) {
            out[1] = from[1];
        }
        if (channels > 2) {
            out[2] = from[2];
        }
    }
}

void nn_depthwise_narrow_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t tile = nn_min(window->x1 - window->x0, TILE), rows = g->kernel_h;
    const uint32_t padding = nn_times4(((const nn_conv_constants *)constants)->input_zero_point);
    uint32_t *const columns = (uint32_t *)(void *)((int8_t *)scratch + kernel_bytes(geometry));
    uint32_t *const outputs = columns + rows * columns_for(g, tile);
    nn_conv_geometry inner = *geometry;
    inner.pad_top = 0;
    inner.pad_left = 0;
    inner.dilation_h = 1;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            const int32_t left = x * g->stride_w - g->pad_left;
            nn_view from = {.data = (const int8_t *)columns},
                    to = {.data = (const int8_t *)outputs};
            nn_window all = {0, 1, 0, 0};
            count = nn_min(tile, nn_run(out, x, window->x1 - x));
            all.x1 = count;
            from.width = columns_for(g, count);
            for (int32_t ky = 0; ky < rows; ky++) {
                const int32_t top = y * g->stride_h - g->pad_top + ky * g->dilation_h;
                const int8_t *row = top < 0 || top >= in->height ? NULL : nn_row(in, top);
                widen_row(columns + ky * from.width, in, row, left, from.width, padding);
            }
            from.height = from.ring_rows = rows;
            from.ring_cols = from.width;
            from.pixel_stride = from.channels = NN_DSP_BLOCK;
            from.row_stride = NN_DSP_BLOCK * from.width;
            to.height = to.ring_rows = 1;
            to.width = to.ring_cols = count;
            to.pixel_stride = to.channels = NN_DSP_BLOCK;
            to.row_stride = NN_DSP_BLOCK * count;
            nn_depthwise_conv2d_s8_dsp(&inner, constants, &from, &to, &all, scratch);
            narrow(nn_out_pixel(out, y, x), out->pixel_stride, (const int8_t *)outputs, count,
                   in->channels);
        }
    }
}
