/* DEPTHWISE_CONV_2D of 3 x 3: along a row of output one channel at a time, whose last two columns
 * of inputs stay in registers; pixels at the sides one by one. */
#include "nn_riscv_scalar.h"

/* One row of output. A row of taps that meets padding has weights of zero, and its products are in
 * the bias. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    const nn_riscv_head *head;
    const nn_riscv_channel *channels;
    const int8_t *weights;
    const int8_t *line[3]; /* the column windows; any row's for one that is padding */
    int32_t inside[3];
    int32_t zero_point;
} row_of;

static inline __attribute__((always_inline)) int8_t finish(const row_of *r, int32_t c,
                                                           int32_t sum) {
    const nn_riscv_channel *k = r->channels + c;
    const nn_conv_constants *common = &r->head->common;
    if (r->head->mode == NN_RISCV_GENERAL) {
        return nn_riscv_general(sum, k, common);
    }
    return nn_riscv_output(sum, k->multiplier, k->exponent, k->offset,
                           r->head->mode != NN_RISCV_PLAIN, common->clamp_min, common->clamp_max);
}

/* All channels of a pixel whose first column is `left`, whatever its taps meet. */
NN_OUTLINE void compute_pixel(const row_of *r, int32_t left, int8_t *out) {
    const int8_t *taps[9];
    for (int32_t k = 0; k < 9; k++) {
        const int32_t x = left + k % 3;
        const int meets = x >= 0 && x < r->in->width && r->inside[k / 3];
        taps[k] = meets ? r->line[k / 3] + nn_column(r->in, x) * r->in->channels : NULL;
    }
    for (int32_t c = 0; c < r->in->channels; c++) {
        const int8_t *weights = r->weights + 9 * c;
        int32_t sum = r->channels[c].bias;
        for (int32_t k = 0; k < 9; k++) {
            sum += weights[k] * (taps[k] != NULL ? taps[k][c] : r->zero_point);
        }
        out[c] = finish(r, c, sum);
    }
}

/* The sum of a channel's nine products: columns a, b, d. */
#define SUM(a, b, d)                                                                               \
    (bias + w0 * a##0 + w1 * b##0 + w2 * d##0 + w3 * a##1 + w4 * b##1 + w5 * d##1 + w6 * a##2 +    \
     w7 * b##2 + w8 * d##2)
#define FETCH(to)                                                                                  \
    do {                                                                                           \
        to##0 = *x0;                                                                               \
        to##1 = *x1;                                                                               \
        to##2 = *x2;                                                                               \
        x0 += step;                                                                                \
        x1 += step;                                                                                \
        x2 += step;                                                                                \
    } while (0)
#define PUT(a, b, d)                                                                               \
    do {                                                                                           \
        *out = nn_riscv_output(SUM(a, b, d), multiplier, exponent, offset, odd, low, high);        \
        out += step;                                                                               \
    } while (0)

/* One channel of `count` pixels side by side, all of whose columns lie in the tensor one after the
 * other from `column` of the window on; stride 1, or 2. Not for the general mode. */
static inline __attribute__((always_inline)) void
compute_run(const row_of *r, int32_t c, int32_t column, int8_t *out, int32_t count, int stride) {
    const int8_t *w = r->weights + 9 * c;
    const int32_t step = r->in->channels, place = column * step + c;
    const int8_t *x0 = r->line[0] + place, *x1 = r->line[1] + place, *x2 = r->line[2] + place;
    const nn_riscv_channel *k = r->channels + c;
    const uint32_t multiplier = k->multiplier;
    const int32_t exponent = k->exponent, offset = k->offset;
    const int32_t low = r->head->common.clamp_min, high = r->head->common.clamp_max;
    const int odd = r->head->mode != NN_RISCV_PLAIN;
    int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];
    int32_t w8 = w[8], bias = k->bias, a0, a1, a2, b0, b1, b2, d0, d1, d2;
    const int8_t *end = out + count * step;
    if (!r->inside[0]) {
        bias += (w0 + w1 + w2) * r->zero_point;
        w0 = w1 = w2 = 0;
    }
    if (!r->inside[1]) {
        bias += (w3 + w4 + w5) * r->zero_point;
        w3 = w4 = w5 = 0;
    }
    if (!r->inside[2]) {
        bias += (w6 + w7 + w8) * r->zero_point;
        w6 = w7 = w8 = 0;
    }
    FETCH(a);
    if (stride == 2) {
        while (out != end) {
            FETCH(b);
            FETCH(d);
            PUT(a, b, d);
            a0 = d0;
            a1 = d1;
            a2 = d2;
        }
        return;
    }
    FETCH(b);
    for (; count >= 3; count -= 3) {
        FETCH(d);
        PUT(a, b, d);
        FETCH(a);
        PUT(b, d, a);
        FETCH(b);
        PUT(d, a, b);
    }
    while (out != end) {
        FETCH(d);
        PUT(a, b, d);
        a0 = b0;
        a1 = b1;
        a2 = b2;
        b0 = d0;
        b1 = d1;
        b2 = d2;
    }
}

NN_OUTLINE void compute_run1(const row_of *r, int32_t c, int32_t column, int8_t *out,
                             int32_t count) {
    compute_run(r, c, column, out, count, 1);
}

NN_OUTLINE void compute_run2(const row_of *r, int32_t c, int32_t column, int8_t *out,
                             int32_t count) {
    compute_run(r, c, column, out, count, 2);
}

/* Pixels side by side, at most `wanted`, whose columns lie in the tensor one after the other from
 * `left` on. */
static int32_t run_length(const nn_view *in, int32_t left, int32_t stride, int32_t wanted) {
    if (left < 0 || left + 3 > in->width) {
        return 0;
    }
    const int32_t columns = nn_run(in, left, in->width - left);
    return columns < 3 ? 0 : nn_min(wanted, (columns - 3) / stride + 1);
}

static void compute_row(const row_of *r, const nn_view *out, const nn_window *window, int32_t y) {
    const int32_t stride = r->geometry->stride_w;
    const int fast = r->head->mode != NN_RISCV_GENERAL && stride <= 2;
    for (int32_t x = window->x0; x < window->x1;) {
        const int32_t left = x * stride - r->geometry->pad_left;
        int8_t *pixel = nn_pixel(out, y, x);
        const int32_t count =
            fast ? run_length(r->in, left, stride, nn_run(out, x, window->x1 - x)) : 0;
        if (count == 0) {
            compute_pixel(r, left, pixel);
            x++;
            continue;
        }
        const int32_t column = nn_column(r->in, left);
        for (int32_t c = 0; c < r->in->channels; c++) {
            if (stride == 1) {
                compute_run1(r, c, column, pixel + c, count);
            } else {
                compute_run2(r, c, column, pixel + c, count);
            }
        }
        x += count;
    }
}

void nn_depthwise_3x3_s8_riscv(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               void *scratch) {
    row_of r;
    (void)scratch;
    r.geometry = geometry;
    r.in = in;
    r.head = (const nn_riscv_head *)constants;
    r.channels = nn_riscv_channels(constants);
    r.weights = (const int8_t *)(r.channels + in->channels);
    r.zero_point = r.head->common.input_zero_point;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t k = 0; k < 3; k++) {
            const int32_t row =
                y * geometry->stride_h - geometry->pad_top + k * geometry->dilation_h;
            r.inside[k] = row >= 0 && row < in->height;
            r.line[k] = r.inside[k] ? nn_row(in, row) : in->data;
        }
        compute_row(&r, out, window, y);
    }
}
