/* CONV_2D and DEPTHWISE_CONV_2D of float32: rows, columns and channels of a filter in order, then
 * the bias. Padding adds nothing. */
#include "nn_float.h"

/* The taps of one output pixel that meet the input. */
typedef struct {
    nn_taps rows, columns;
    int32_t y, x; /* of the first tap, wherever it lies */
} patch;

static patch patch_at(const nn_conv_geometry *g, const nn_view *in, int32_t y, int32_t x) {
    patch p;
    p.y = y * g->stride_h - g->pad_top;
    p.x = x * g->stride_w - g->pad_left;
    p.rows = nn_valid_taps(p.y, in->height, g->kernel_h, g->dilation_h);
    p.columns = nn_valid_taps(p.x, in->width, g->kernel_w, g->dilation_w);
    return p;
}

/* The sum of one output channel over `inputs` channels from `first` on; `step`: weights from
 * column to column of the filter. */
static float sum_up(const nn_conv_geometry *g, const nn_view *in, const patch *p, int32_t first,
                    int32_t inputs, const float *weights, int32_t step) {
    float sum = 0.0F;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++) {
            const float *x = nn_float_in(in, p->y + ky * g->dilation_h, p->x + kx * g->dilation_w);
            const float *w = weights + (ky * g->kernel_w + kx) * step;
            for (int32_t i = 0; i < inputs; i++) {
                sum += x[first + i] * w[i];
                NN_ONE_BY_ONE();
            }
        }
    }
    return sum;
}

void nn_conv2d_f32(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                   const nn_view *out, const nn_window *window) {
    const nn_conv_geometry *g = geometry;
    const nn_float_layer layer = nn_float_open(constants, out->channels);
    const int32_t inputs = in->channels / g->groups, outputs = out->channels / g->groups;
    const int32_t size = g->kernel_h * g->kernel_w * inputs;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const patch p = patch_at(g, in, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                const float *weights = layer.weights + c * size;
                const int32_t first = c / outputs * inputs;
                result[c] =
                    nn_float_finish(&layer, sum_up(g, in, &p, first, inputs, weights, inputs), c);
            }
        }
    }
}

void nn_depthwise_conv2d_f32(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_conv_geometry *g = geometry;
    const nn_float_layer layer = nn_float_open(constants, out->channels);
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const patch p = patch_at(g, in, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                result[c] = nn_float_finish(
                    &layer, sum_up(g, in, &p, c / g->groups, 1, layer.weights + c, out->channels),
                    c);
            }
        }
    }
}
