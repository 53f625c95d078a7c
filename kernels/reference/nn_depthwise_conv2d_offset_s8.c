/* DEPTHWISE_CONV_2D whose filter has a zero point; all taps of a channel lie side by side. */
#include "nn_conv.h"
#include "nn_uint8.h"

/* The taps of one output pixel that meet the input; padding holds the zero point, and adds nothing.
 */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x; /* of the first tap, wherever it lies */
    int32_t kernel_h, kernel_w, dilation_h, dilation_w;
    int32_t multiplier, channels;
    int32_t zero_point, filter_zero_point;
} patch;

/* Output channel c's sum. */
static inline int32_t sum_taps(const patch *p, const int8_t *weights, int32_t c) {
    int32_t sum = 0;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        const int8_t *row = nn_row(p->in, p->y + ky * p->dilation_h) + c / p->multiplier;
        const int8_t *w = weights + (c * p->kernel_h + ky) * p->kernel_w;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++) {
            const int32_t column = nn_column(p->in, p->x + kx * p->dilation_w);
            sum += (row[column * p->in->pixel_stride] - p->zero_point) *
                   (w[kx] - p->filter_zero_point);
        }
    }
    return sum;
}

void nn_depthwise_conv2d_offset_s8(const nn_conv_geometry *geometry, const void *constants,
                                   const nn_view *in, const nn_view *out, const nn_window *window,
                                   void *scratch) {
    const nn_conv_block block = nn_conv_open(nn_behind_offset(constants), out->channels);
    patch p = {.in = in,
               .kernel_h = geometry->kernel_h,
               .kernel_w = geometry->kernel_w,
               .dilation_h = geometry->dilation_h,
               .dilation_w = geometry->dilation_w,
               .multiplier = geometry->groups,
               .channels = out->channels,
               .zero_point = block.common.input_zero_point,
               .filter_zero_point = *(const int32_t *)constants};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        p.y = y * geometry->stride_h - geometry->pad_top;
        p.rows = nn_valid_taps(p.y, in->height, geometry->kernel_h, p.dilation_h);
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *pixel = nn_out_pixel(out, y, x);
            p.x = x * geometry->stride_w - geometry->pad_left;
            p.columns = nn_valid_taps(p.x, in->width, p.kernel_w, p.dilation_w);
            for (int32_t c = 0; c < p.channels; c++) {
                pixel[c] = nn_conv_output(sum_taps(&p, block.weights, c), block.channels + c,
                                          &block.common);
            }
        }
    }
}
