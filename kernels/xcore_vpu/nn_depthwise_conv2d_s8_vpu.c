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

/* ---- lines of taps -------------------------------------------------------------------------- */

#define MOST_LINES 16

/* Taps that lie `step` bytes from one another. */
typedef struct {
    const int8_t *x;
    int32_t step, last; /* last: one less than there are */
    int32_t flags;      /* bit 0: another line follows; the other bits are set but of padding */
} line;

/* The taps of a pixel; from pixel to pixel they lie x_step further, but for padding. */
typedef struct {
    /* nn_vpu_offsets.h has these places. */
    int32_t x_step, to_step;
    line lines[MOST_LINES];
    int32_t count; /* of lines */
} nn_vpu_taps;

static inline line *add_line(line *l, const int8_t *x, int32_t step, int32_t taps, int32_t flags) {
    NN_VPU_SCALAR(1);
    if (taps <= 0) {
        return l;
    }
    l->x = x;
    l->step = step;
    l->last = taps - 1;
    l->flags = flags | 1;
    NN_VPU_SCALAR(7);
    return l + 1;
}

#ifdef __XS3A__
typedef char taps_layout[offsetof(nn_vpu_taps, lines) == 4 * TAPS_LINES &&
                                 sizeof(line) == 4 * (LINE_FLAGS + 1)
                             ? 1
                             : -1];
void nn_vpu_taps_xs3(const nn_vpu_group *groups, const nn_vpu_taps *taps, int32_t offset, int8_t *to,
                     int32_t pixels, int32_t more);
#endif

/* The outputs of `pixels` pixels, whose taps the unit can load. */
static void compute_lines(nn_vpu *v, const walk *w, const nn_vpu_taps *t, int8_t *to,
                          int32_t pixels) {
#ifdef __XS3A__
    if ((((uintptr_t)to | (uint32_t)t->to_step) & 3) == 0) {
        nn_vpu_taps_xs3(w->groups, t, 0, to, pixels, w->count - 1);
        return;
    }
#endif
    for (const nn_vpu_group *group = w->groups; group < w->groups + w->count; group++) {
        int32_t offset = group->place;
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            const int8_t *weights = group->weights;
            nn_vpu_biases(v, group);
            for (int32_t i = 0; i < t->count; i++) {
                const line *l = &t->lines[i];
                const int8_t *x = l->flags & ~1 ? l->x + offset : l->x;
                weights = add_taps(v, x, l->step, l->last + 1, weights);
                NN_VPU_SCALAR(5);
            }
            nn_vpu_finish(v, w->block, group, to + pixel * t->to_step + group->place);
            offset += t->x_step;
            NN_VPU_SCALAR(8);
        }
        NN_VPU_SCALAR(8);
    }
}

/* How many of `pixels` pixels from column x on have taps in the input's columns, one step after
 * the other. */
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

/* The taps of a pixel. */
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
} cut;

static cut cut_of(const walk *w, const window_taps *t, int32_t row) {
    const nn_view *in = w->in;
    const int32_t dilation = w->g->dilation_w, taps = t->columns.end - t->columns.first;
    const int8_t *data = nn_row(in, t->top + row * w->g->dilation_h);
    const int32_t x = t->left + t->columns.first * dilation;
    const int32_t held = (nn_run(in, x, (taps - 1) * dilation + 1) + dilation - 1) / dilation;
    cut c;
    c.at[0] = c.at[1] = data + nn_column(in, x) * in->pixel_stride;
    c.taps[0] = held;
    c.taps[1] = taps - held;
    if (held < taps) {
        c.at[1] = data + nn_column(in, x + held * dilation) * in->pixel_stride;
    }
    NN_VPU_SCALAR(24);
    return c;
}

static inline const int8_t *add_run(nn_vpu *v, const walk *w, const int8_t *x, int32_t taps,
                                    const int8_t *weights) {
    return w->direct
               ? add_taps(v, x, w->tap_step, taps, weights)
               : add_taps_apart(v, x, w->tap_step, taps, weights, nn_min(w->channels, NN_VPU_ACC));
}

/* Finds the lines of a pixel's taps, unless they are too many. */
static int find_lines(const walk *w, const window_taps *t, nn_vpu_taps *lines) {
    const int32_t width = w->g->kernel_w, rows = t->rows.end - t->rows.first;
    const int32_t before = t->columns.first, after = width - t->columns.end;
    line *l = lines->lines;
    l = add_line(l, w->padding, 0, t->rows.first * width, 0);
    if (rows > 0) {
        cut c = cut_of(w, t, t->rows.first);
        if ((1 + (c.taps[1] > 0) + (before > 0) + (after > 0)) * rows + 2 > MOST_LINES) {
            return 0;
        }
        for (int32_t k = rows; k > 0; k--) {
            l = add_line(l, w->padding, 0, before, 0);
            for (int32_t i = 0; i < 2; i++) {
                l = add_line(l, c.at[i], w->tap_step, c.taps[i], ~1);
                c.at[i] += w->row_step;
                c.at[i] = c.at[i] >= w->ring_end ? c.at[i] - w->ring : c.at[i];
                NN_VPU_SCALAR(4);
            }
            l = add_line(l, w->padding, 0, after, 0);
        }
    }
    l = add_line(l, w->padding, 0, (w->g->kernel_h - t->rows.end) * width, 0);
    l[-1].flags &= ~1;
    lines->count = (int32_t)(l - lines->lines);
    NN_VPU_SCALAR(20);
    return 1;
}

/* The channels of a group of one pixel, row by row. */
static void compute_rows(nn_vpu *v, const walk *w, const window_taps *t, const nn_vpu_group *group,
                         int8_t *to) {
    const int32_t first = group->place, before = t->columns.first, width = w->g->kernel_w;
    const int8_t *weights;
    nn_vpu_biases(v, group);
    weights = add_taps(v, w->padding, 0, t->rows.first * width, group->weights);
    for (int32_t k = t->rows.first; k < t->rows.end; k++) {
        const cut c = cut_of(w, t, k);
        weights = add_taps(v, w->padding, 0, before, weights);
        weights = add_run(v, w, c.at[0] + first, c.taps[0], weights);
        weights = add_run(v, w, c.at[1] + first, c.taps[1], weights);
        weights = add_taps(v, w->padding, 0, width - t->columns.end, weights);
        NN_VPU_SCALAR(3);
    }
    add_taps(v, w->padding, 0, (w->g->kernel_h - t->rows.end) * width, weights);
    nn_vpu_finish(v, w->block, group, to);
    NN_VPU_SCALAR(4);
}

/* The pixels of a row from column x on that have the same lines of taps; returns how many. */
static int32_t compute_run(nn_vpu *v, const walk *w, window_taps *t, int32_t x, int32_t x1,
                           int8_t *to) {
    const int32_t together = w->direct ? in_place(w, x, t->left, x1 - x) : 0;
    const nn_taps rows = t->rows, all = {0, w->g->kernel_w};
    nn_vpu_taps lines;
    t->columns = together > 0 ? all
                              : nn_valid_taps(t->left, w->in->width, w->g->kernel_w,
                                              w->g->dilation_w);
    if (t->columns.first >= t->columns.end) {
        t->rows.first = t->rows.end = 0;
    }
    NN_VPU_SCALAR(10);
    if (w->direct && find_lines(w, t, &lines)) {
        lines.x_step = w->g->stride_w * w->in->pixel_stride;
        lines.to_step = w->out->pixel_stride;
        compute_lines(v, w, &lines, to, nn_max(together, 1));
        t->rows = rows;
        return nn_max(together, 1);
    }
    for (const nn_vpu_group *group = w->groups; group < w->groups + w->count; group++) {
        compute_rows(v, w, t, group, to + group->place);
    }
    t->rows = rows;
    return 1;
}

/* The pixels of a window. */
static void compute(nn_vpu *v, const walk *w, const nn_window *window) {
    const nn_conv_geometry *g = w->g;
    window_taps t;
    for (int32_t y = window->y0; y < window->y1; y++) {
        t.top = y * g->stride_h - g->pad_top;
        t.rows = nn_valid_taps(t.top, w->in->height, g->kernel_h, g->dilation_h);
        if (t.rows.first >= t.rows.end) {
            t.rows.first = t.rows.end = 0;
        }
        NN_VPU_SCALAR(24);
        for (int32_t x = window->x0; x < window->x1;) {
            t.left = x * g->stride_w - g->pad_left;
            x += compute_run(v, w, &t, x, window->x1, nn_out_pixel(w->out, y, x));
            NN_VPU_SCALAR(16);
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
