/* DEPTHWISE_CONV_2D of depth multiplier 1: 16 channels of a pixel at a time.
 *
 * Weights: of each group of 16 channels, tap by tap, 16 bytes. From 16 channels on the last group
 * is made of the last 16, so that nothing behind a pixel is read.
 */
#include "nn_split.h"
#include "nn_vpu_requantise.h"
#include "nn_xcore_vpu.h"

/* What all groups of a pixel share. */
typedef struct {
    const nn_conv_geometry *g;
    const nn_view *in;
    int32_t top, left;
    nn_taps rows, columns;
    int direct; /* 16 channels of a pixel can be read in place */
    NN_VPU_ALIGNED int8_t padding[NN_VPU_BYTES];
} window_taps;

/* The products of `taps` taps with what lies at `x`; each is `step` further. */
static inline const int8_t *add_taps(nn_vpu *v, const int8_t *x, int32_t step, int32_t taps,
                                     const int8_t *weights) {
    for (int32_t i = taps; i > 0; i--) {
        nn_vpu_vldc(v, weights);
        nn_vpu_vlmacc(v, x);
        x += step;
        weights += NN_VPU_ACC;
    }
    NN_VPU_MAC(2 * taps);
    NN_VPU_SCALAR(taps + 1);
    return weights;
}

/* The same with the first `channels` of 16 bytes that the unit cannot load where they are. */
NN_OUTLINE const int8_t *add_taps_apart(nn_vpu *v, const int8_t *x, int32_t step, int32_t taps,
                                        const int8_t *weights, int32_t channels) {
    NN_VPU_ALIGNED int8_t copy[NN_VPU_ACC] = {0};
    for (; taps > 0; taps--, x += step) {
        memcpy(copy, x, (size_t)channels);
        NN_VPU_SCALAR(2 * channels + 4);
        weights = add_taps(v, copy, 0, 1, weights);
    }
    return weights;
}

/* A row of taps that meets row `row` of the input; `first`: the group's first channel. */
static inline const int8_t *add_row(nn_vpu *v, const window_taps *t, const int8_t *row,
                                    const int8_t *weights, int32_t channels) {
    const nn_view *in = t->in;
    const int32_t dilation = t->g->dilation_w, step = dilation * in->pixel_stride;
    int32_t x = t->left + t->columns.first * dilation;
    weights = add_taps(v, t->padding, 0, t->columns.first, weights);
    for (int32_t left = t->columns.end - t->columns.first; left > 0;) {
        const int32_t span = nn_run(in, x, (left - 1) * dilation + 1);
        const int32_t taps = (span + dilation - 1) / dilation;
        const int8_t *at = row + nn_column(in, x) * in->pixel_stride;
        weights = t->direct ? add_taps(v, at, step, taps, weights)
                            : add_taps_apart(v, at, step, taps, weights, channels);
        x += taps * dilation;
        left -= taps;
        NN_VPU_SCALAR(8);
    }
    return add_taps(v, t->padding, 0, t->g->kernel_w - t->columns.end, weights);
}

/* The sums of the group whose first channel is `first`. */
static inline void add_window(nn_vpu *v, const window_taps *t, const int8_t *weights, int32_t first,
                              int32_t channels) {
    const nn_conv_geometry *g = t->g;
    const int none = t->columns.first >= t->columns.end;
    const int32_t begin = none ? 0 : t->rows.first, end = none ? 0 : t->rows.end;
    weights = add_taps(v, t->padding, 0, begin * g->kernel_w, weights);
    for (int32_t k = begin; k < end; k++) {
        weights =
            add_row(v, t, nn_row(t->in, t->top + k * g->dilation_h) + first, weights, channels);
        NN_VPU_SCALAR(6);
    }
    add_taps(v, t->padding, 0, (g->kernel_h - end) * g->kernel_w, weights);
}

/* All channels of one pixel. */
static inline void compute_pixel(nn_vpu *v, const nn_vpu_block *b, const window_taps *t,
                                 int32_t channels, int8_t *out) {
    const int32_t groups = (channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
    const int32_t group_bytes = t->g->kernel_h * t->g->kernel_w * NN_VPU_ACC;
    for (int32_t group = 0; group < groups; group++) {
        const nn_vpu_record *record = b->records + group;
        const int32_t first = nn_min(group * NN_VPU_ACC, nn_max(channels - NN_VPU_ACC, 0));
        const int32_t own = nn_min(channels, NN_VPU_ACC);
        nn_vpu_biases(v, record);
        add_window(v, t, b->weights + group * group_bytes, first, own);
        nn_vpu_finish(v, b, record, NN_VPU_ALONE, 0, own, out + first);
        NN_VPU_SCALAR(8);
    }
}

/* The pixels of a window. */
static void compute(const nn_conv_geometry *g, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window) {
    const nn_vpu_block b = nn_vpu_open(constants, (in->channels + NN_VPU_ACC - 1) / NN_VPU_ACC);
    nn_vpu v;
    window_taps t;
    t.g = g;
    t.in = in;
    t.direct =
        in->channels >= NN_VPU_ACC && in->channels % 4 == 0 &&
        (((uintptr_t)in->data | (uintptr_t)in->row_stride | (uintptr_t)in->pixel_stride) & 3) == 0;
    memset(t.padding, b.common.input_zero_point, sizeof(t.padding));
    NN_VPU_SCALAR(14);
    for (int32_t y = window->y0; y < window->y1; y++) {
        t.top = y * g->stride_h - g->pad_top;
        t.rows = nn_valid_taps(t.top, in->height, g->kernel_h, g->dilation_h);
        for (int32_t x = window->x0; x < window->x1; x++) {
            t.left = x * g->stride_w - g->pad_left;
            t.columns = nn_valid_taps(t.left, in->width, g->kernel_w, g->dilation_w);
            compute_pixel(&v, &b, &t, in->channels, nn_pixel(out, y, x));
            NN_VPU_SCALAR(20);
        }
        NN_VPU_SCALAR(12);
    }
}

/* Rows or columns with all their channels. */
static void piece(const nn_call *call, const nn_piece *own) {
    compute((const nn_conv_geometry *)call->geometry, call->constants, call->in, call->out,
            &own->window);
}

void nn_depthwise_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t groups = (out->channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
    const nn_call call = {.body = piece,
                          .geometry = geometry,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = (g->kernel_h - 1) * g->dilation_h + 1,
                          .stride_h = g->stride_h,
                          .pad_top = g->pad_top,
                          .issues = groups * (3 * g->kernel_h * g->kernel_w + 60)};
    (void)scratch;
    nn_split(&call, window);
}
