/* CONV_2D of few input channels, a network's first layer: a pixel's taps are collected without gaps
 * before they are widened. */
#include "nn_dsp_matmul.h"

static int32_t patch_quads(const nn_conv_geometry *geometry, const nn_view *in) {
    return (geometry->kernel_h * geometry->kernel_w * in->channels + 3) / 4;
}

int32_t nn_conv2d_few_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                           const nn_view *out) {
    const int32_t quads = patch_quads(geometry, in);
    (void)out;
    return nn_dsp_widened_bytes(quads) + 4 * NN_DSP_PIXELS * quads;
}

/* One row of output. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows;       /* that meet the input, */
    const int8_t *data; /* the first of them, */
    int32_t row_step;   /* and what leads to the next; both in bytes */
    int32_t row_bytes;  /* of taps */
    int32_t zero_point;
} layer;

static inline void copy(int8_t *to, const int8_t *from, int32_t count) {
    for (; count >= 4; count -= 4, to += 4, from += 4) {
        nn_store4(to, nn_load4(from));
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

static inline const int8_t *next_row(const layer *l, const int8_t *row) {
    const nn_view *in = l->in;
    const int32_t ring = in->ring_rows * in->row_stride;
    row += l->row_step;
    return row >= in->data + ring ? row - ring : row;
}

/* Collects a pixel's taps, all of which meet the input, from column `column` of the window on. */
static void collect_inside(const layer *l, int8_t *to, int32_t column) {
    const int8_t *row = l->data;
    for (int32_t k = l->geometry->kernel_h; k > 0; k--, to += l->row_bytes) {
        copy(to, row + column * l->in->channels, l->row_bytes);
        row = next_row(l, row);
    }
}

/* Collects a pixel's taps, whatever they meet, from column `left` of the tensor on. */
NN_OUTLINE void collect(const layer *l, int8_t *to, int32_t left) {
    const nn_view *in = l->in;
    const int8_t *row = l->data;
    for (int32_t k = 0; k < l->geometry->kernel_h; k++) {
        const int inside = k >= l->rows.first && k < l->rows.end;
        int32_t x = left;
        for (int32_t i = 0; i < l->geometry->kernel_w; i++, x += l->geometry->dilation_w) {
            const int padding = !inside || x < 0 || x >= in->width;
            const int8_t *from = padding ? NULL : row + nn_column(in, x) * in->channels;
            for (int32_t c = 0; c < in->channels; c++) {
                *to++ = padding ? (int8_t)l->zero_point : from[c];
            }
        }
        row = inside ? next_row(l, row) : row;
    }
}

/* Collects the taps of `pixels`, `apart` bytes from one to the next. */
static void collect_pixels(const layer *l, int8_t *to, int32_t apart, int32_t pixels,
                           int32_t left) {
    const nn_conv_geometry *g = l->geometry;
    const int32_t span = (pixels - 1) * g->stride_w + g->kernel_w;
    const int whole = l->rows.end - l->rows.first == g->kernel_h && g->dilation_w == 1;
    if (whole && left >= 0 && left + span <= l->in->width && nn_run(l->in, left, span) == span) {
        int32_t column = nn_column(l->in, left);
        for (; pixels > 0; pixels--, to += apart, column += g->stride_w) {
            collect_inside(l, to, column);
        }
        return;
    }
    for (; pixels > 0; pixels--, to += apart, left += g->stride_w) {
        collect(l, to, left);
    }
}

void nn_conv2d_few_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window,
                          void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_dsp_constants *c = (const nn_dsp_constants *)constants;
    const int32_t quads = patch_quads(g, in), taps = g->kernel_h * g->kernel_w * in->channels;
    uint32_t *widened = nn_dsp_widened(scratch);
    int8_t *patches = (int8_t *)(widened + 2 * NN_DSP_PIXELS * quads);
    layer l;
    l.geometry = g;
    l.in = in;
    l.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    l.row_bytes = g->kernel_w * in->channels;
    l.zero_point = c->common.input_zero_point;
    for (int32_t i = 0; i < NN_DSP_PIXELS; i++) {
        for (int32_t k = taps; k < 4 * quads; k++) {
            patches[4 * quads * i + k] = 0; /* what meets no weight but 0 */
        }
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        l.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        l.data = in->data;
        if (l.rows.first < l.rows.end) {
            l.data = nn_row(in, top + l.rows.first * g->dilation_h);
        }
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t pixels = nn_dsp_tile(nn_run(out, x, window->x1 - x));
            collect_pixels(&l, patches, 4 * quads, pixels, x * g->stride_w - g->pad_left);
            (void)nn_dsp_widen(widened, pixels, patches, 4 * quads, 4 * quads);
            nn_dsp_matmul(c, pixels, (uint32_t *)scratch, quads, nn_pixel(out, y, x),
                          out->channels);
            x += pixels;
        }
    }
}
