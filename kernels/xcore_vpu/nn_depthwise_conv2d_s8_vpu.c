/* DEPTHWISE_CONV_2D of depth multiplier 1: 16 channels of a pixel at a time, all pixels for some
 * groups of channels, then for others.
 *
 * Weights: of each group of 16 channels, tap by tap, 16 bytes. From 16 channels on the last group
 * is made of the last 16, so that nothing behind a pixel is read.
 */
#include "nn_split.h"
#include "nn_vpu_requantise.h"
#include "nn_xcore_vpu.h"

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *g;
    const nn_view *in, *out;
    const nn_vpu_block *block;
    nn_vpu_group *groups;
    int32_t count; /* of groups that are computed together */
    int32_t channels, group_bytes;
    int32_t tap_step, row_step; /* from tap to tap; from row to row of taps, in a ring */
    int32_t ring;               /* its bytes, */
    const int8_t *ring_end;     /* and where it ends */
    int direct;                 /* 16 channels of a pixel can be read in place */
    NN_VPU_ALIGNED int8_t padding[NN_VPU_BYTES];
} walk;

static walk opened(const nn_conv_geometry *g, const nn_vpu_block *b, const nn_view *in,
                   const nn_view *out) {
    walk w;
    w.g = g;
    w.in = in;
    w.out = out;
    w.block = b;
    w.channels = in->channels;
    w.group_bytes = g->kernel_h * g->kernel_w * NN_VPU_ACC;
    w.tap_step = g->dilation_w * in->pixel_stride;
    w.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    w.ring = in->ring_rows * in->row_stride;
    w.ring_end = in->data + w.ring;
    w.direct =
        in->channels >= NN_VPU_ACC && in->channels % 4 == 0 &&
        (((uintptr_t)in->data | (uintptr_t)in->row_stride | (uintptr_t)in->pixel_stride) & 3) == 0;
    memset(w.padding, b->common.input_zero_point, sizeof(w.padding));
    NN_VPU_SCALAR(40);
    return w;
}

/* What is to be known of a group. */
static inline void open_group(nn_vpu *v, const walk *w, int32_t index, nn_vpu_group *group) {
    const int32_t own = nn_min(w->channels, NN_VPU_ACC);
    const int32_t first = nn_min(index * NN_VPU_ACC, w->channels - own);
    group->record = w->block->records + index;
    group->weights = w->block->weights + index * w->group_bytes;
    nn_vpu_place(group, w->block, NN_VPU_ALONE, first, own);
    nn_vpu_unpack(v, w->block, group);
    NN_VPU_SCALAR(12);
}

/* The products of one tap: two issues. */
static inline void add_tap(nn_vpu *v, const int8_t *x, const int8_t *weights) {
    nn_vpu_vldc(v, weights);
    nn_vpu_vlmacc(v, x);
}

/* The products of `taps` taps with what lies at `x`; each is `step` further. */
static inline const int8_t *add_taps(nn_vpu *v, const int8_t *x, int32_t step, int32_t taps,
                                     const int8_t *weights) {
    NN_VPU_MAC(2 * taps);
    NN_VPU_SCALAR(taps > 0 ? 4 + taps / 4 : 1); /* four tests, and the loop's turns */
    if (taps <= 0) {
        return weights;
    }
    for (; taps >= 4; taps -= 4, x += 4 * step, weights += 4 * NN_VPU_ACC) {
        add_tap(v, x, weights);
        add_tap(v, x + step, weights + NN_VPU_ACC);
        add_tap(v, x + 2 * step, weights + 2 * NN_VPU_ACC);
        add_tap(v, x + 3 * step, weights + 3 * NN_VPU_ACC);
    }
    if (taps & 2) {
        add_tap(v, x, weights);
        add_tap(v, x + step, weights + NN_VPU_ACC);
        x += 2 * step;
        weights += 2 * NN_VPU_ACC;
    }
    if (taps & 1) {
        add_tap(v, x, weights);
        weights += NN_VPU_ACC;
    }
    return weights;
}

/* ---- pixels whose taps all meet the input, one step after the other ------------------------- */

static void compute_in_place(nn_vpu *v, const walk *w, const int8_t *from, int8_t *to,
                             int32_t pixels) {
    const int32_t step = w->g->stride_w * w->in->pixel_stride;
    for (int32_t index = 0; index < w->count; index++) {
        const nn_vpu_group *group = w->groups + index;
        const int32_t first = group->place;
        const int8_t *start = from;
        int8_t *place = to + first;
        NN_VPU_SCALAR(6);
        for (int32_t i = pixels; i > 0; i--) {
            const int8_t *row = start, *weights = group->weights;
            nn_vpu_biases(v, group);
            for (int32_t k = w->g->kernel_h; k > 0; k--) {
                weights = add_taps(v, row + first, w->tap_step, w->g->kernel_w, weights);
                row += w->row_step;
                row = row >= w->ring_end ? row - w->ring : row;
                NN_VPU_SCALAR(3);
            }
            nn_vpu_finish(v, w->block, group, place);
            start += step;
            place += w->out->pixel_stride;
            NN_VPU_SCALAR(2);
        }
    }
}

/* How many of `pixels` pixels from column x on are such. */
static int32_t in_place(const walk *w, int32_t x, int32_t left, int32_t pixels) {
    const nn_conv_geometry *g = w->g;
    const int32_t span = (g->kernel_w - 1) * g->dilation_w + 1, last = w->in->width - span;
    NN_VPU_SCALAR(20);
    if (left < 0 || left > last) {
        return 0;
    }
    const int32_t held = nn_run(w->in, left, w->in->width) - span; /* past the first one's taps */
    pixels = nn_min(pixels, nn_min(last - left, held) / g->stride_w + 1);
    return held < 0 ? 0 : nn_run(w->out, x, pixels);
}

/* ---- all others ---------------------------------------------------------------------------- */

/* The taps of one pixel. */
typedef struct {
    int32_t top, left;
    nn_taps rows, columns; /* that meet the input */
} window_taps;

/* As add_taps, with the first `channels` of 16 bytes that the unit cannot load where they are. */
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

/* Where a row of taps meets the input: a ring of columns cuts it into two runs at most. */
typedef struct {
    const int8_t *at[2];
    int32_t taps[2];
} line;

static line line_of(const walk *w, const window_taps *t, int32_t row) {
    const nn_view *in = w->in;
    const int32_t dilation = w->g->dilation_w, taps = t->columns.end - t->columns.first;
    const int8_t *data = nn_row(in, t->top + row * w->g->dilation_h);
    const int32_t x = t->left + t->columns.first * dilation;
    const int32_t held = (nn_run(in, x, (taps - 1) * dilation + 1) + dilation - 1) / dilation;
    line l;
    l.at[0] = l.at[1] = data + nn_column(in, x) * in->pixel_stride;
    l.taps[0] = held;
    l.taps[1] = taps - held;
    if (held < taps) {
        l.at[1] = data + nn_column(in, x + held * dilation) * in->pixel_stride;
    }
    NN_VPU_SCALAR(24);
    return l;
}

static inline const int8_t *add_run(nn_vpu *v, const walk *w, const int8_t *x, int32_t taps,
                                    const int8_t *weights) {
    return w->direct
               ? add_taps(v, x, w->tap_step, taps, weights)
               : add_taps_apart(v, x, w->tap_step, taps, weights, nn_min(w->channels, NN_VPU_ACC));
}

#define MOST_LINES 8 /* that are looked up once for all channels of a pixel */

/* All channels of one pixel. */
static void compute_apart(nn_vpu *v, const walk *w, const window_taps *t, int8_t *to) {
    const nn_conv_geometry *g = w->g;
    const int none = t->columns.first >= t->columns.end;
    const int32_t begin = none ? 0 : t->rows.first, end = none ? 0 : t->rows.end;
    const int32_t before = t->columns.first, after = g->kernel_w - t->columns.end;
    line lines[MOST_LINES];
    for (int32_t k = begin; k < end && k < begin + MOST_LINES; k++) {
        lines[k - begin] = line_of(w, t, k);
    }
    for (int32_t index = 0; index < w->count; index++) {
        const nn_vpu_group *group = w->groups + index;
        const int32_t first = group->place;
        const int8_t *weights;
        nn_vpu_biases(v, group);
        weights = add_taps(v, w->padding, 0, begin * g->kernel_w, group->weights);
        for (int32_t k = begin; k < end; k++) {
            const line l = k - begin < MOST_LINES ? lines[k - begin] : line_of(w, t, k);
            weights = add_taps(v, w->padding, 0, before, weights);
            weights = add_run(v, w, l.at[0] + first, l.taps[0], weights);
            weights = add_run(v, w, l.at[1] + first, l.taps[1], weights);
            weights = add_taps(v, w->padding, 0, after, weights);
            NN_VPU_SCALAR(3);
        }
        add_taps(v, w->padding, 0, (g->kernel_h - end) * g->kernel_w, weights);
        nn_vpu_finish(v, w->block, group, to + first);
        NN_VPU_SCALAR(4);
    }
}

/* The pixels of a window. */
static void compute(nn_vpu *v, const walk *w, const nn_window *window) {
    const nn_conv_geometry *g = w->g;
    window_taps t;
    for (int32_t y = window->y0; y < window->y1; y++) {
        t.top = y * g->stride_h - g->pad_top;
        t.rows = nn_valid_taps(t.top, w->in->height, g->kernel_h, g->dilation_h);
        const int direct = w->direct && t.rows.end - t.rows.first == g->kernel_h;
        NN_VPU_SCALAR(24);
        for (int32_t x = window->x0; x < window->x1;) {
            t.left = x * g->stride_w - g->pad_left;
            const int32_t pixels = direct ? in_place(w, x, t.left, window->x1 - x) : 0;
            int8_t *to = nn_out_pixel(w->out, y, x);
            if (pixels > 0) {
                compute_in_place(v, w, nn_pixel(w->in, t.top, t.left), to, pixels);
            } else {
                t.columns = nn_valid_taps(t.left, w->in->width, g->kernel_w, g->dilation_w);
                compute_apart(v, w, &t, to);
            }
            x += nn_max(pixels, 1);
            NN_VPU_SCALAR(24);
        }
    }
}

/* Groups of channels that lie in [c0, c1). */
static void piece(const nn_call *call, const nn_piece *own) {
    const int32_t count = (call->in->channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
    const int32_t end = (own->c1 + NN_VPU_ACC - 1) / NN_VPU_ACC;
    const nn_vpu_block block = nn_vpu_open(call->constants, count);
    nn_vpu_group groups[NN_VPU_BATCH];
    walk w = opened((const nn_conv_geometry *)call->geometry, &block, call->in, call->out);
    nn_vpu v;
    w.groups = groups;
    for (int32_t first = own->c0 / NN_VPU_ACC; first < end; first += NN_VPU_BATCH) {
        w.count = nn_min(end - first, NN_VPU_BATCH);
        for (int32_t i = 0; i < w.count; i++) {
            open_group(&v, &w, first + i, groups + i);
        }
        compute(&v, &w, &own->window);
    }
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
                          .channel_step = out->channels % NN_VPU_ACC == 0 ? NN_VPU_ACC : 0,
                          .channels_first = groups > NN_VPU_BATCH,
                          .issues = groups * (3 * g->kernel_h * g->kernel_w + 60)};
    (void)scratch;
    nn_split(&call, window);
}
