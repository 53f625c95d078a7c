/* CONV_2D of any kernel size: the taps of three pixels widened at a time, each row of taps padded
 * to a multiple of four. */
#include "nn_dsp_matmul.h"

static int32_t row_quads(const nn_conv_geometry *geometry, int32_t in_channels) {
    return (geometry->kernel_w * in_channels + 3) / 4;
}

int32_t nn_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    const int32_t quads = row_quads(geometry, in->channels);
    (void)out;
    return nn_dsp_widened_bytes(geometry->kernel_h * quads) + 4 * quads;
}

/* One row of output. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows;       /* that meet the input, */
    const int8_t *data; /* the first of them, */
    int32_t row_step;   /* and what leads to the next; both in bytes */
    int32_t row_bytes, row_quads;
    int32_t zero_point;
    uint32_t *widened;
    int8_t *line; /* room for a row of taps of one pixel */
} layer;

/* Collects the taps of one pixel in one row, whatever they meet. */
NN_OUTLINE void gather(const layer *l, const int8_t *row, int32_t left) {
    const nn_view *in = l->in;
    int8_t *to = l->line;
    int32_t x = left;
    for (int32_t k = 0; k < l->geometry->kernel_w; k++, x += l->geometry->dilation_w) {
        if (x < 0 || x >= in->width) {
            __builtin_memset(to, (int)l->zero_point, (size_t)in->channels);
        } else {
            __builtin_memcpy(to, row + nn_column(in, x) * in->channels, (size_t)in->channels);
        }
        to += in->channels;
    }
}

/* Widens the taps of `pixels`, the first of which begins at column `left`. */
static void widen_taps(const layer *l, int32_t pixels, int32_t left) {
    const nn_conv_geometry *g = l->geometry;
    const nn_view *in = l->in;
    const int32_t stride = g->stride_w, span = (pixels - 1) * stride + g->kernel_w;
    const int inside = left >= 0 && left + span <= in->width && g->dilation_w == 1;
    const int32_t column = inside ? nn_column(in, left) : 0;
    const int joined = inside && column + span <= in->ring_cols;
    const int8_t *row = l->data, *end = in->data + in->ring_rows * in->row_stride;
    uint32_t *x =
        nn_dsp_widen_value(l->widened, pixels, l->zero_point, l->rows.first * l->row_quads);
    for (int32_t k = l->rows.first; k < l->rows.end; k++) {
        if (joined) {
            x = nn_dsp_widen(x, pixels, row + column * in->channels, stride * in->channels,
                             l->row_bytes);
        } else {
            for (int32_t p = 0; p < pixels; p++) {
                gather(l, row, left + p * stride);
                (void)nn_dsp_widen1(x + p, pixels, l->line, l->row_bytes);
            }
            x += 2 * pixels * l->row_quads;
        }
        row += l->row_step;
        if (row >= end) {
            row -= in->ring_rows * in->row_stride;
        }
    }
    (void)nn_dsp_widen_value(x, pixels, l->zero_point, (g->kernel_h - l->rows.end) * l->row_quads);
}

void nn_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_dsp_constants *c = (const nn_dsp_constants *)constants;
    const int32_t quads = g->kernel_h * row_quads(g, in->channels);
    layer l;
    l.geometry = g;
    l.in = in;
    l.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    l.row_bytes = g->kernel_w * in->channels;
    l.row_quads = row_quads(g, in->channels);
    l.zero_point = c->common.input_zero_point;
    l.widened = nn_dsp_widened(scratch);
    l.line = (int8_t *)(l.widened + 2 * NN_DSP_PIXELS * quads);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        l.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        l.data = in->data;
        if (l.rows.first < l.rows.end) {
            l.data = nn_row(in, top + l.rows.first * g->dilation_h);
        }
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t pixels = nn_dsp_tile(nn_run(out, x, window->x1 - x));
            widen_taps(&l, pixels, x * g->stride_w - g->pad_left);
            nn_dsp_matmul(c, pixels, (uint32_t *)scratch, quads, nn_pixel(out, y, x),
                          out->channels);
            x += pixels;
        }
    }
}
