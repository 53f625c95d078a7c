/* DEPTHWISE_CONV_2D of any kernel size: channels side by side in vectors. */
#include "nn_rvv.h"

/* One pixel's taps. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_taps rows, columns; /* that meet the input */
    int32_t left;
    int joined;                   /* the columns that meet it follow one another */
    int32_t pixel_step, tap_step; /* bytes from column to column, and from tap to tap */
    const int8_t *data, *end;     /* the first row that is met; the end of the ring of rows, */
    int32_t row_step, ring;       /* from row to row of taps; the ring's bytes */
} patch;

/* Adds the products of `taps` that meet padding. */
static inline __attribute__((always_inline)) vint32m4_t add_padding(vint32m4_t sums,
                                                                    const int8_t *weights,
                                                                    int32_t channels, int32_t taps,
                                                                    int16_t padding, size_t vl) {
    for (; taps > 0; taps--, weights += channels) {
        sums = __riscv_vwmacc(sums, padding, nn_rvv_load(weights, vl), vl);
    }
    return sums;
}

/* Adds the products of the taps that meet a row of the input, whose weights these are. */
static inline __attribute__((always_inline)) vint32m4_t add_row(vint32m4_t sums, const patch *p,
                                                                const int8_t *row,
                                                                const int8_t *weights,
                                                                int32_t channels, size_t vl) {
    int32_t x = p->left + p->columns.first * p->geometry->dilation_w;
    int32_t taps = p->columns.end - p->columns.first;
    if (taps == 0) {
        return sums;
    }
    if (p->joined) {
        const int8_t *at = row + nn_column(p->in, x) * p->pixel_step;
        for (; taps > 0; taps--, weights += channels, at += p->tap_step) {
            sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
        }
        return sums;
    }
    for (; taps > 0; taps--, weights += channels, x += p->geometry->dilation_w) {
        const int8_t *at = row + nn_column(p->in, x) * p->pixel_step;
        sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
    }
    return sums;
}

/* Sums of channels [c, c + vl), requantised. */
static inline __attribute__((always_inline)) vint32m4_t requantise(vint32m4_t sums,
                                                                   const nn_rvv_block *b, int32_t c,
                                                                   int general, size_t vl) {
    const vint32m4_t multiplier = __riscv_vle32_v_i32m4(b->multipliers + c, vl);
    const vint32m4_t shift = __riscv_vle32_v_i32m4(b->shifts + c, vl);
    return general
               ? nn_rvv_general(sums, multiplier, shift, vl)
               : nn_rvv_requantise(sums, multiplier, __riscv_vneg(shift, vl), b->head->mode, vl);
}

/* Channels [c, c + vl) of one pixel. */
static inline void compute(const patch *p, const nn_rvv_block *b, int8_t *out, int32_t c,
                           int general, size_t vl) {
    const nn_conv_geometry *g = p->geometry;
    const int32_t channels = p->in->channels, row_weights = g->kernel_w * channels;
    const int32_t left = p->columns.first, right = p->columns.end;
    const int16_t padding = (int16_t)b->head->common.input_zero_point;
    const int8_t *weights = b->weights + c, *row = p->data + c;
    vint32m4_t sums = __riscv_vle32_v_i32m4(b->biases + c, vl);
    sums = add_padding(sums, weights, channels, p->rows.first * g->kernel_w, padding, vl);
    weights += p->rows.first * row_weights;
    for (int32_t k = p->rows.first; k < p->rows.end; k++, weights += row_weights) {
        sums = add_padding(sums, weights, channels, left, padding, vl);
        sums = add_row(sums, p, row, weights + left * channels, channels, vl);
        sums = add_padding(sums, weights + right * channels, channels, g->kernel_w - right, padding,
                           vl);
        row += p->row_step;
        row = row >= p->end ? row - p->ring : row;
    }
    sums = add_padding(sums, weights, channels, (g->kernel_h - p->rows.end) * g->kernel_w, padding,
                       vl);
    const vint32m4_t q = requantise(sums, b, c, general, vl);
    __riscv_vse8(out + c, nn_rvv_output(q, &b->head->common, vl), vl);
}

/* Channels [c, c + vl) of a pixel of 3 x 3 taps, all inside and joined; `rows`: theirs. */
static inline void compute_3x3(const int8_t *const rows[3], const nn_rvv_block *b, int32_t channels,
                               int32_t step, int8_t *out, int32_t c, int general, size_t vl) {
    const int8_t *weights = b->weights + c;
    vint32m4_t sums = __riscv_vle32_v_i32m4(b->biases + c, vl);
    for (int32_t k = 0; k < 3; k++) {
        const int8_t *at = rows[k] + c;
        for (int32_t i = 0; i < 3; i++, at += step, weights += channels) {
            sums = __riscv_vwmacc(sums, nn_rvv_load(at, vl), nn_rvv_load(weights, vl), vl);
        }
    }
    const vint32m4_t q = requantise(sums, b, c, general, vl);
    __riscv_vse8(out + c, nn_rvv_output(q, &b->head->common, vl), vl);
}

/* All of a call; `general`: whether some factor is 1 or more, which a test in the inner loops would
 * make everybody pay for. */
static inline __attribute__((always_inline)) void walk(const nn_conv_geometry *g,
                                                       const void *constants, const nn_view *in,
                                                       const nn_view *out, const nn_window *window,
                                                       const int general) {
    const nn_rvv_block b = nn_rvv_open(constants, in->channels);
    const int small = g->kernel_h == 3 && g->kernel_w == 3 && g->dilation_w == 1;
    const int32_t channels = in->channels, step = in->pixel_stride;
    patch p;
    p.geometry = g;
    p.in = in;
    p.pixel_step = step;
    p.tap_step = g->dilation_w * step;
    p.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    p.ring = in->ring_rows * in->row_stride;
    p.end = in->data + p.ring;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int8_t *lines[3] = {NULL, NULL, NULL};
        int8_t *const out_row = nn_out_row(out, y);
        const int32_t top = y * g->stride_h - g->pad_top;
        p.rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        p.data = in->data;
        if (p.rows.first < p.rows.end) {
            p.data = nn_row(in, top + p.rows.first * g->dilation_h);
        }
        const int whole = small && p.rows.end - p.rows.first == 3;
        for (int32_t k = 0; whole && k < 3; k++) {
            lines[k] = nn_row(in, top + k * g->dilation_h);
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
                    compute_3x3(rows, &b, channels, step, pixel, c, general, vl);
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
                compute(&p, &b, pixel, c, general, vl);
            }
        }
    }
}

static __attribute__((noinline)) void walk_general(const nn_conv_geometry *g, const void *constants,
                                                   const nn_view *in, const nn_view *out,
                                                   const nn_window *window) {
    walk(g, constants, in, out, window, 1);
}

void nn_depthwise_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    (void)scratch;
    if (((const nn_rvv_head *)constants)->mode == NN_RVV_GENERAL) {
        walk_general(geometry, constants, in, out, window);
    } else {
        walk(geometry, constants, in, out, window, 0);
    }
}
