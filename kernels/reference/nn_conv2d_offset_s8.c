/* CONV_2D, grouped or not, whose filter has a zero point: it is taken from the sum of the products
 * as often as the sum of the inputs says. Four output channels at a time. */
#include "nn_conv.h"
#include "nn_uint8.h"

#define BLOCK 4 /* output channels that are summed together */

/* The taps of one output pixel that meet the input; padding holds the zero point, and adds nothing.
 */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x;   /* of the first tap, wherever it lies */
    int32_t inputs; /* channels of a group; also the weights of a tap */
    int32_t kernel_h, kernel_w, dilation_h, dilation_w;
    int32_t zero_point, filter_zero_point;
} patch;

/* The sums of `count` output channels, at most BLOCK; `first`: the group's input channel. */
static inline void sum_channels(int32_t sums[BLOCK], const patch *p, const int8_t *weights,
                                int32_t first, int32_t count) {
    const int32_t size = p->kernel_h * p->kernel_w * p->inputs;
    int32_t total = 0;
    for (int32_t c = 0; c < count; c++) {
        sums[c] = 0;
    }
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++) {
        const int8_t *row = nn_row(p->in, p->y + ky * p->dilation_h) + first;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++) {
            const int8_t *x =
                row + nn_column(p->in, p->x + kx * p->dilation_w) * p->in->pixel_stride;
            const int8_t *w = weights + (ky * p->kernel_w + kx) * p->inputs;
            for (int32_t i = 0; i < p->inputs; i++) {
                const int32_t value = x[i] - p->zero_point;
                total += value;
                for (int32_t c = 0; c < count; c++) {
                    sums[c] += value * w[c * size + i];
                }
            }
        }
    }
    for (int32_t c = 0; c < count; c++) {
        sums[c] -= p->filter_zero_point * total;
    }
}

/* All channels of one output pixel. */
static void compute_pixel(const patch *p, const nn_conv_block *block, int32_t groups,
                          int32_t channels, int8_t *out) {
    const int32_t outputs = channels / groups, size = p->kernel_h * p->kernel_w * p->inputs;
    for (int32_t group = 0; group < groups; group++) {
        const int32_t first = group * p->inputs, end = (group + 1) * outputs;
        int32_t sums[BLOCK], c = group * outputs;
        for (; c + BLOCK <= end; c += BLOCK) {
            sum_channels(sums, p, block->weights + c * size, first, BLOCK);
            nn_conv_output4(sums, block->channels + c, &block->common, out + c);
        }
        for (; c < end; c++) {
            sum_channels(sums, p, block->weights + c * size, first, 1);
            out[c] = nn_conv_output(sums[0], block->channels + c, &block->common);
        }
    }
}

void nn_conv2d_offset_s8(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_block block = nn_conv_open(nn_behind_offset(constants), out->channels);
    patch p = {.in = in,
               .inputs = in->channels / geometry->groups,
               .kernel_h = geometry->kernel_h,
               .kernel_w = geometry->kernel_w,
               .dilation_h = geometry->dilation_h,
               .dilation_w = geometry->dilation_w,
               .zero_point = block.common.input_zero_point,
               .filter_zero_point = *(const int32_t *)constants};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        p.y = y * geometry->stride_h - geometry->pad_top;
        p.rows = nn_valid_taps(p.y, in->height, p.kernel_h, p.dilation_h);
        for (int32_t x = window->x0; x < window->x1; x++) {
            p.x = x * geometry->stride_w - geometry->pad_left;
            p.columns = nn_valid_taps(p.x, in->width, p.kernel_w, p.dilation_w);
            compute_pixel(&p, &block, geometry->groups, out->channels, nn_out_pixel(out, y, x));
        }
    }
}
