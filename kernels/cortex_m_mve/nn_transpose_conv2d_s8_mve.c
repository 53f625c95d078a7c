/* TRANSPOSE_CONV, Helium: outputs whose distance is the stride meet the same taps, so each of
 * stride_h * stride_w phases is a convolution with stride 1, with a part of the taps.
 *
 * constants: nn_mve_head and the channels' factors as nn_conv2d_s8_mve's; then for each phase, the
 * columns' phases innermost, its biases and weights as a convolution has them. Phase (i, j) has the
 * taps of the rows i, i + stride_h, ... and the columns j, j + stride_w, ..., the last ones first.
 * A phase without taps has a vector of zeros for each channel, which meets whatever is in scratch.
 */
#include "nn_mve_conv.h"

/* How many taps a phase has along an axis. */
static inline int32_t taps_of(int32_t kernel, int32_t stride, int32_t phase) {
    return kernel > phase ? (kernel - phase + stride - 1) / stride : 0;
}

/* The first place from `from` on that is in the phase, in the frame that `pad` is not yet cut from.
 */
static inline int32_t first_of(int32_t from, int32_t pad, int32_t stride, int32_t phase) {
    return from + (phase + stride - (from + pad) % stride) % stride;
}

/* A phase's outputs in row y, from column x on. */
static void compute_row(nn_mve_pairs *p, const nn_mve_patches *patches, const nn_conv_geometry *g,
                        const nn_view *out, int32_t y, int32_t x, int32_t end, int8_t *scratch) {
    const int32_t stride = g->stride_w, apart = stride * out->pixel_stride;
    const int32_t before = patches->geometry->kernel_w - 1;
    for (int32_t count; x < end; x += count * stride) {
        count = apart > NN_MVE_MAX_APART ? 1 : (nn_run(out, x, end - x) + stride - 1) / stride;
        p->out = nn_out_pixel(out, y, x);
        nn_mve_gathered_run(p, patches, apart, (x + g->pad_left) / stride - before, count, scratch);
    }
}

/* The columns of taps of a phase that meet the input, the same ones in each row of outputs. */
typedef struct {
    int32_t left, count;    /* the first column of taps; those that meet the input */
    int32_t before, offset; /* bytes in a row of the patch; in a row of the input */
    int wraps;              /* the end of a ring lies between them */
} met_columns;

static inline met_columns find_columns(const nn_mve_patches *p, int32_t left) {
    const nn_view *const in = p->in;
    const nn_taps taps = nn_valid_taps(left, in->width, p->geometry->kernel_w, 1);
    const int32_t count = taps.end - taps.first;
    const int32_t column = count > 0 ? nn_column(in, left + taps.first) : 0;
    const met_columns met = {left, count, taps.first * in->channels, column * in->pixel_stride,
                             column + count > in->ring_cols};
    return met;
}

/* Gathers the patch whose first row is `top`; the taps that meet no column are there already. */
static NN_NOINLINE void gather_column(nn_mve_patches *p, const met_columns *met, int32_t top,
                                      int8_t *patch) {
    const nn_view *const in = p->in;
    int8_t *to = patch + met->before;
    if (met->wraps) {
        p->top = top;
        nn_mve_gather_taps(p, met->left, patch);
        return;
    }
    for (int32_t ky = p->geometry->kernel_h; ky > 0; ky--, top++, to += p->segment) {
        if (top >= 0 && top < in->height) {
            nn_mve_copy_columns(p, to, nn_row(in, top) + met->offset, met->count);
        } else {
            nn_mve_fill(to, p->zero_point, met->count * in->channels);
        }
    }
}

/* The outputs of a phase that has only column x: pairs of rows, `row` is the first one's. */
static NN_NOINLINE void compute_column(nn_mve_pairs *p, nn_mve_patches *patches,
                                       const nn_conv_geometry *g, const nn_view *out, int32_t row,
                                       int32_t y, int32_t end, int32_t x, int8_t *scratch) {
    const int32_t bytes = (p->inputs + 15) & ~15, left = (x + g->pad_left) / g->stride_w;
    const met_columns met = find_columns(patches, left - (patches->geometry->kernel_w - 1));
    int8_t *const second = scratch + bytes;
    nn_mve_fill(scratch, patches->zero_point, 2 * bytes);
    for (int32_t next; y < end; y = next) {
        next = y + g->stride_h;
        gather_column(patches, &met, row++, scratch);
        p->out = nn_out_pixel(out, y, x);
        p->x0 = scratch;
        const int32_t apart = next < end ? (int32_t)(nn_out_pixel(out, next, x) - p->out) : 0;
        if (apart <= 0 || apart > NN_MVE_MAX_APART) { /* the last row, or before a ring's end */
            nn_mve_run_single(p);
            continue;
        }
        gather_column(patches, &met, row++, second);
        p->x1 = second;
        nn_mve_run(p, apart, 1);
        next += g->stride_h;
    }
}

int32_t nn_transpose_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    const int32_t rows = taps_of(geometry->kernel_h, geometry->stride_h, 0);
    const int32_t columns = taps_of(geometry->kernel_w, geometry->stride_w, 0);
    (void)out;
    return 2 * ((rows * columns * in->channels + 15) & ~15);
}

void nn_transpose_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *const g = geometry;
    const int32_t zero_point = ((const nn_mve_head *)constants)->common.input_zero_point;
    const int32_t channels = out->channels + (out->channels % 3 == 2);
    const int8_t *weights = NULL;
    for (int32_t phase = 0; phase < g->stride_h * g->stride_w; phase++) {
        const int32_t i = phase / g->stride_w, j = phase % g->stride_w;
        const int32_t rows = taps_of(g->kernel_h, g->stride_h, i);
        const int32_t columns = taps_of(g->kernel_w, g->stride_w, j);
        const nn_conv_geometry taps = {
            columns > 0 ? rows : 0, rows > 0 ? columns : 0, 1, 1, 1, 1, 0, 0, 1};
        const int32_t x = first_of(window->x0, g->pad_left, g->stride_w, j);
        nn_mve_patches patches;
        nn_mve_pairs p;
        nn_mve_set_patches(&patches, &taps, in, zero_point);
        nn_mve_open_pairs(&p, constants, nn_max(taps.kernel_h * patches.segment, 1), out, 0);
        p.out_step *= g->stride_w;
        p.weights = weights == NULL ? p.weights : weights;
        weights = p.weights + channels * (8 + ((p.inputs + 15) & ~15));
        int32_t y = first_of(window->y0, g->pad_top, g->stride_h, i);
        const int32_t row = (y + g->pad_top) / g->stride_h - (taps.kernel_h - 1);
        if (x < window->x1 && x + g->stride_w >= window->x1) {
            compute_column(&p, &patches, g, out, row, y, window->y1, x, (int8_t *)scratch);
            continue;
        }
        for (; y < window->y1; y += g->stride_h) {
            nn_mve_find_rows(&patches, (y + g->pad_top) / g->stride_h - (taps.kernel_h - 1));
            compute_row(&p, &patches, g, out, y, x, window->x1, (int8_t *)scratch);
        }
    }
}
