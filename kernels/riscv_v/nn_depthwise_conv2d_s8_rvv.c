/* DEPTHWISE_CONV_2D of any kernel size: channels side by side in vectors. */
#include "nn_rvv.h"

/* One pixel's taps: columns [left, ...) of rows from `top` on. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows, columns; /* that meet the input */
    int32_t top, left;
    int joined; /* the columns that meet it lie one after the other */
} patch;

/* Adds the products of one row of taps, whose weights these are; `x`: the first that meets the
 * input, or NULL if the row is padding. */
static inline __attribute__((always_inline)) vint32m4_t add_row(vint32m4_t sums, const patch *p,
                                                                const int8_t *row, int32_t c,
                                                                const int8_t *weights,
                                                                int32_t channels, int16_t padding,
                                                                size_t vl) {
    const nn_conv_geometry *g = p->geometry;
    const int32_t first = row != NULL ? p->columns.first : g->kernel_w;
    const int32_t end = row != NULL ? p->columns.end : g->kernel_w;
    int32_t k = 0, x = p->left + first * g->dilation_w;
    for (; k < first; k++, weights += channels) {
        sums = __riscv_vwmacc(sums, padding, nn_rvv_load(weights, vl), vl);
    }
    if (p->joined) {
        const int32_t step = g->dilation_w * p->in->pixel_stride;
        const int8_t *at =
            row != NULL && first < end ? row + nn_column(p->in, x) * p->in->pixel_stride + c : row;
        for (; k < end; k++, weights += channels, at += step) {
            sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
        }
    } else {
        for (; k < end; k++, weights += channels, x += g->dilation_w) {
            const int8_t *at = row + nn_column(p->in, x) * p->in->pixel_stride + c;
            sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
        }
    }
    for (; k < g->kernel_w; k++, weights += channels) {
        sums = __riscv_vwmacc(sums, padding, nn_rvv_load(weights, vl), vl);
    }
    return sums;
}

/* Channels [c, c + vl) of one pixel. */
static inline void compute(const patch *p, const nn_rvv_block *b, int8_t *out, int32_t c,
                           size_t vl) {
    const nn_conv_geometry *g = p->geometry;
    const int32_t channels = p->in->channels;
    const int16_t padding = (int16_t)b->head->common.input_zero_point;
    const int8_t *weights = b->weights + c;
    vint32m4_t sums = __riscv_vle32_v_i32m4(b->biases + c, vl);
    for (int32_t k = 0; k < g->kernel_h; k++, weights += g->kernel_w * channels) {
        const int inside = k >= p->rows.first && k < p->rows.end;
        const int8_t *row = inside ? nn_row(p->in, p->top + k * g->dilation_h) : NULL;
        sums = add_row(sums, p, row, c, weights, channels, padding, vl);
    }
    const vint32m4_t multiplier = __riscv_vle32_v_i32m4(b->multipliers + c, vl);
    const vint32m4_t shift = __riscv_vle32_v_i32m4(b->shifts + c, vl);
    const vint32m4_t q =
        b->head->mode == NN_RVV_GENERAL
            ? nn_rvv_general(sums, multiplier, shift, vl)
            : nn_rvv_requantise(sums, multiplier, __riscv_vneg(shift, vl), b->head->mode, vl);
    __riscv_vse8(out + c, nn_rvv_output(q, &b->head->common, vl), vl);
}

/* Channels [c, c + vl) of a pixel of 3 x 3 taps, all inside and joined; `rows`: theirs. */
static inline void compute_3x3(const int8_t *const rows[3], const nn_rvv_block *b, int32_t channels,
                               int32_t step, int8_t *out, int32_t c, size_t vl) {
    const int8_t *weights = b->weights + c;
    vint32m4_t sums = __riscv_vle32_v_i32m4(b->biases + c, vl);
    for (int32_t k = 0; k < 3; k++) {
        const int8_t *at = rows[k] + c;
        for (int32_t i = 0; i < 3; i++, at += step, weights += channels) {
            sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
        }
    }
    const vint32m4_t multiplier = __riscv_vle32_v_i32m4(b->multipliers + c, vl);
    const vint32m4_t right = __riscv_vneg(__riscv_vle32_v_i32m4(b->shifts + c, vl), vl);
    const vint32m4_t q = nn_rvv_requantise(sums, multiplier, right, b->head->mode, vl);
    __riscv_vse8(out + c, nn_rvv_output(q, &b->head->common, vl), vl);
}

void nn_depthwise_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_rvv_block b = nn_rvv_open(constants, in->channels);
    const int small = g->kernel_h == 3 && g->kernel_w == 3 && g->dilation_w == 1 &&
                      b.head->mode != NN_RVV_GENERAL;
    const int32_t channels = in->channels, step = in->pixel_stride;
    patch p;
    (void)scratch;
    p.geometry = g;
    p.in = in;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int8_t *lines[3] = {NULL, NULL, NULL};
        int8_t *const out_row = nn_row(out, y);
        p.top = y * g->stride_h - g->pad_top;
        p.rows = nn_valid_taps(p.top, in->height, g->kernel_h, g->dilation_h);
        const int whole = small && p.rows.end - p.rows.first == 3;
        for (int32_t k = 0; whole && k < 3; k++) {
            lines[k] = nn_row(in, p.top + k * g->dilation_h);
        }
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *pixel = out_row + nn_column(out, x) * out->pixel_stride;
            size_t vl;
            p.left = x * g->stride_w - g->pad_left;
            if (whole && p.left >= 0 && p.left + 3 <= in->width && nn_run(in, p.left, 3) == 3) {
                const int32_t place = nn_column(in, p.left) * step;
                const int8_t *const rows[3] = {lines[0] + place, lines[1] + place,
                                               lines[2] + place};
                for (int32_t c = 0; c < channels; c += (int32_t)vl) {
                    vl = __riscv_vsetvl_e32m4((size_t)(channels - c));
                    compute_3x3(rows, &b, channels, step, pixel, c, vl);
                }
                continue;
            }
            p.columns = nn_valid_taps(p.left, in->width, g->kernel_w, g->dilation_w);
            const int32_t count = p.columns.end - p.columns.first;
            const int32_t span = count == 0 ? 0 : (count - 1) * g->dilation_w + 1;
            p.joined =
                count == 0 || nn_run(in, p.left + p.columns.first * g->dilation_w, span) == span;
            for (int32_t c = 0; c < channels; c += (int32_t)vl) {
                vl = __riscv_vsetvl_e32m4((size_t)(channels - c));
                compute(&p, &b, pixel, c, vl);
            }
        }
    }
}
