/* CONV_2D of one group, any kernel size: 16 output channels of a pixel at a time.
 *
 * Inputs are read in place where the unit can: rows of taps that lie side by side and fill 32 bytes
 * each, or single taps that do, at addresses that are multiples of 4. Otherwise the taps of a pixel
 * are collected in scratch first.
 */
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *g;
    const nn_view *in, *out;
    int32_t row_bytes; /* of a row of taps */
    int joined;        /* a row of taps lies side by side, where the ring does not cut it */
    int direct;        /* rows of taps can be read in place */
    int8_t *patch;     /* where taps are collected */
} walk;

static walk opened(const nn_conv_geometry *g, const nn_view *in, const nn_view *out,
                   void *scratch) {
    walk w;
    w.g = g;
    w.in = in;
    w.out = out;
    w.row_bytes = g->kernel_w * in->channels;
    w.joined = g->kernel_w == 1 || (g->dilation_w == 1 && nn_dense(in));
    w.direct =
        w.joined && (g->kernel_h == 1 || w.row_bytes % NN_VPU_BYTES == 0) &&
        (((uintptr_t)in->data | (uintptr_t)in->row_stride | (uintptr_t)in->pixel_stride) & 3) == 0;
    w.direct |= g->kernel_h == 1 && g->kernel_w == 1; /* needs no scratch, wherever it lies */
    w.patch = (int8_t *)scratch;
    NN_VPU_SCALAR(20);
    return w;
}

static inline int8_t *fill(int8_t *to, int32_t value, int32_t bytes) {
    memset(to, value, (size_t)bytes);
    NN_VPU_SCALAR(2 * bytes + 2);
    return to + bytes;
}

/* One row of taps from column `left` of the tensor's row `y` on; some meet padding. */
static int8_t *collect_row(nn_vpu *v, const walk *w, int8_t *to, int32_t y, int32_t left,
                           nn_taps columns, int32_t padding) {
    const nn_view *in = w->in;
    const int32_t channels = in->channels, step = w->g->dilation_w;
    const int8_t *row = nn_row(in, y);
    int32_t x = left + columns.first * step;
    to = fill(to, padding, columns.first * channels);
    for (int32_t k = columns.first; k < columns.end;) {
        const int32_t run = w->joined ? nn_run(in, x, columns.end - k) : 1;
        nn_vpu_copy(v, to, row + nn_column(in, x) * in->pixel_stride, run * channels);
        to += run * channels;
        x += run * step;
        k += run;
        NN_VPU_SCALAR(12);
    }
    return fill(to, padding, (w->g->kernel_w - columns.end) * channels);
}

/* All taps of a pixel, one behind the other. */
static void collect(nn_vpu *v, const walk *w, int32_t top, int32_t left, nn_taps rows,
                    nn_taps columns, int32_t padding) {
    int8_t *to = w->patch;
    if (columns.first >= columns.end) {
        rows.first = rows.end = 0;
    }
    to = fill(to, padding, rows.first * w->row_bytes);
    for (int32_t k = rows.first; k < rows.end; k++) {
        to = collect_row(v, w, to, top + k * w->g->dilation_h, left, columns, padding);
        NN_VPU_SCALAR(4);
    }
    fill(to, padding, (w->g->kernel_h - rows.end) * w->row_bytes);
}

/* Where the taps of the pixel whose window begins at (top, left) can be read. */
static nn_vpu_runs runs_of(nn_vpu *v, const walk *w, int32_t top, int32_t left, nn_taps rows,
                           int32_t padding) {
    const nn_view *in = w->in;
    const nn_conv_geometry *g = w->g;
    const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
    nn_vpu_runs runs;
    NN_VPU_SCALAR(16);
    if (w->direct && rows.end - rows.first == g->kernel_h &&
        columns.end - columns.first == g->kernel_w &&
        nn_run(in, left, g->kernel_w) == g->kernel_w) {
        runs.first = nn_pixel(in, top, left);
        runs.count = g->kernel_h;
        runs.bytes = w->row_bytes;
        runs.row_step = g->dilation_h % in->ring_rows * in->row_stride;
        runs.ring = in->ring_rows * in->row_stride;
        runs.ring_end = in->data + runs.ring;
        runs.end = nn_vpu_end(in);
        NN_VPU_SCALAR(14);
        return runs;
    }
    collect(v, w, top, left, rows, columns, padding);
    runs.first = w->patch;
    runs.count = 1;
    runs.bytes = g->kernel_h * w->row_bytes;
    runs.row_step = runs.ring = 0;
    runs.end = runs.ring_end =
        w->patch + (runs.bytes + NN_VPU_BYTES - 1) / NN_VPU_BYTES * NN_VPU_BYTES;
    return runs;
}

/* Output channels of groups [first, end) of the pixels of a window. `scratch`: 16-byte aligned. */
static void compute(const nn_conv_geometry *g, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window, int32_t first, int32_t end,
                    void *scratch) {
    const int32_t groups = nn_vpu_groups(out->channels);
    const int32_t group_bytes = nn_vpu_group_bytes(g->kernel_h * g->kernel_w * in->channels);
    const nn_vpu_block b = nn_vpu_open(constants, groups);
    const walk w = opened(g, in, out, scratch);
    nn_vpu v;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
        nn_vpu_vsetc(&v, NN_VPU_S8);
        NN_VPU_SCALAR(16);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_vpu_runs runs = runs_of(&v, &w, top, x * g->stride_w - g->pad_left, rows,
                                             b.common.input_zero_point);
            nn_vpu_pixel(&v, &b, &runs, groups, first, end, group_bytes, 0, out->channels,
                         nn_pixel(out, y, x));
            NN_VPU_SCALAR(10);
        }
    }
}

void nn_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    compute(geometry, constants, in, out, window, 0, nn_vpu_groups(out->channels), scratch);
}
