/* DEPTHWISE_CONV_2D of depth multiplier 1: 16 channels of a pixel at a time, all pixels for some
 * groups of channels, then for others.
 *
 * Weights: of each group of 16 channels, tap by tap, 16 bytes. From 16 channels on the last group
 * is made of the last 16, so that nothing behind a pixel is read. Of less than 16 channels the next
 * pixel's are read as well, and the last pixel of the input is copied.
 */
#include "nn_split.h"
#include "nn_vpu_requantise.h"
#include "nn_xcore_vpu.h"

/* The taps of a pixel: rows of `count` inputs between padding, and above and below them more
 * padding. `head` and `tail` are all taps there, `before` and `after` those of a row. */
typedef struct {
    int32_t x_step, to_step; /* from pixel to pixel, of inputs and of outputs */
    int32_t head, rows, before, count, after, tail;
    int32_t row_step, ring; /* from row to row of taps, in a ring of so many bytes */
    const int8_t *ring_end; /* and where it ends */
    const int8_t *x;        /* the first input */
    const int8_t *padding;  /* 32 bytes */
    int32_t tap_step;
} nn_vpu_taps;

#ifdef __XS3A__
typedef char taps_layout[offsetof(nn_vpu_taps, tap_step) == 4 * (TAPS_PADDING + 1) ? 1 : -1];
void nn_vpu_taps_xs3(const nn_vpu_group *groups, const nn_vpu_taps *taps, int32_t offset,
                     int8_t *to, int32_t pixels, int32_t more);
#endif

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *g;
    const nn_view *in, *out;
    const nn_vpu_block *block;
    const nn_vpu_group *groups;
    int32_t count; /* of groups that are computed together */
    int32_t channels, group_bytes;
    nn_vpu_taps taps;   /* of the pixels that are computed */
    int direct;         /* 16 channels of a pixel can be read in place, */
    int32_t safe;       /* in the ring's last row up to this column */
    int straight;       /* no ring of columns cuts rows; then */
    int32_t first, end; /* pixels whose taps are all in the input's columns */
    int by_xs3;         /* the function in assembly can compute pixels */
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
    w.taps.x_step = g->stride_w * in->pixel_stride;
    w.taps.to_step = out->pixel_stride;
    w.taps.tap_step = g->dilation_w * in->pixel_stride;
    w.taps.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    w.taps.ring = in->ring_rows * in->row_stride;
    w.taps.ring_end = in->data + w.taps.ring;
    w.direct =
        in->channels % 4 == 0 &&
        (((uintptr_t)in->data | (uintptr_t)in->row_stride | (uintptr_t)in->pixel_stride) & 3) == 0;
    w.safe = in->ring_cols - 1 -
             (nn_max(NN_VPU_ACC - in->channels, 0) + in->pixel_stride - 1) / in->pixel_stride;
    w.straight =
        in->x0 == 0 && in->ring_cols >= in->width && out->x0 == 0 && out->ring_cols >= out->width;
    w.end = in->width - ((g->kernel_w - 1) * g->dilation_w + 1) + g->pad_left;
    w.end = w.end < 0 ? 0 : w.end / g->stride_w + 1;
    w.first = (g->pad_left + g->stride_w - 1) / g->stride_w;
    /* a row of taps is one line, and padding on one side another, or on both two */
    w.by_xs3 = w.direct && g->kernel_w <= 8 &&
               g->kernel_h + nn_min(g->kernel_h, in->height) *
                                 (in->width < g->kernel_w * g->dilation_w ? 2 : 1) <=
                   TAPS_MOST_LINES &&
               ((((uintptr_t)out->data | (uint32_t)out->row_stride | (uint32_t)out->pixel_stride) &
                 3) == 0);
    memset(w.padding, b->common->input_zero_point, sizeof(w.padding));
    NN_VPU_SCALAR(52);
    return w;
}

/* Makes the groups from number `first` on ready. */
static inline void open_groups(nn_vpu *v, const walk *w, nn_vpu_group *groups, int32_t first) {
    const int32_t own = nn_min(w->channels, NN_VPU_ACC);
    int32_t ahead = NN_VPU_BATCH * w->group_bytes;
    NN_VPU_SCALAR(14);
    if (groups->bytes == 0 || (first + NN_VPU_BATCH) * NN_VPU_ACC > w->channels) {
        ahead = 0;
        for (int32_t i = 0; i < w->count; i++) {
            const int32_t place = nn_min((first + i) * NN_VPU_ACC, w->channels - own);
            nn_vpu_place(groups + i, w->block, NN_VPU_ALONE, place, own);
            groups[i].weights = w->block->weights + (first + i) * w->group_bytes;
            NN_VPU_SCALAR(24);
        }
    }
    nn_vpu_ready(v, groups, w->block->records + first, w->count, ahead);
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

/* How many of `pixels` pixels from column x on have taps in the input's columns, one step after
 * the other. */
static int32_t in_place(const walk *w, int32_t x, int32_t left, int32_t pixels) {
    const nn_conv_geometry *g = w->g;
    NN_VPU_SCALAR(6);
    if (w->straight) {
        return x < w->first ? 0 : nn_min(pixels, w->end - x);
    }
    const int32_t span = (g->kernel_w - 1) * g->dilation_w + 1, last = w->in->width - span;
    NN_VPU_SCALAR(20);
    if (left < 0 || left > last) {
        return 0;
    }
    const int32_t held = nn_run(w->in, left, w->in->width) - span; /* past the first one's taps */
    pixels = nn_min(pixels, nn_min(last - left, held) / g->stride_w + 1);
    return held < 0 ? 0 : nn_run(w->out, x, pixels);
}

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

static inline const int8_t *add_run(nn_vpu *v, const walk *w, int direct, const int8_t *x,
                                    int32_t taps, const int8_t *weights) {
    return direct ? add_taps(v, x, w->taps.tap_step, taps, weights)
                  : add_taps_apart(v, x, w->taps.tap_step, taps, weights,
                                   nn_min(w->channels, NN_VPU_ACC));
}

/* A group's outputs of a pixel. A ring of columns may cut rows: `held` inputs of a row lie before
 * that, the others from `cut` bytes further on. */
static void compute_pixel(nn_vpu *v, const walk *w, const nn_vpu_group *group, int direct,
                          const int8_t *x, int32_t held, int32_t cut, int8_t *to) {
    const nn_vpu_taps *t = &w->taps;
    const int8_t *weights;
    nn_vpu_biases(v, group);
    weights = add_taps(v, t->padding, 0, t->head, group->weights);
    for (int32_t k = t->rows; k > 0; k--) {
        weights = add_taps(v, t->padding, 0, t->before, weights);
        weights = add_run(v, w, direct, x + group->place, held, weights);
        weights = add_run(v, w, direct, x + cut + group->place, t->count - held, weights);
        weights = add_taps(v, t->padding, 0, t->after, weights);
        x += t->row_step;
        x = x >= t->ring_end ? x - t->ring : x;
        NN_VPU_SCALAR(6);
    }
    add_taps(v, t->padding, 0, t->tail, weights);
    nn_vpu_finish(v, w->block, group, to + group->place);
    NN_VPU_SCALAR(4);
}

/* Pixels with the same taps, in columns from `left` on; `direct`: the unit can load these. */
static void compute_pixels(nn_vpu *v, const walk *w, int direct, int32_t left, int32_t pixels,
                           int8_t *to) {
    const nn_vpu_taps *t = &w->taps;
    const nn_view *in = w->in;
    const int32_t dilation = w->g->dilation_w;
    int32_t held = t->count, cut = 0;
    if (!w->straight && t->count > 0) {
        held = (nn_run(in, left, (t->count - 1) * dilation + 1) + dilation - 1) / dilation;
        if (held < t->count) {
            cut = (nn_column(in, left + held * dilation) - nn_column(in, left)) * in->pixel_stride;
        }
        NN_VPU_SCALAR(30);
    }
#ifdef __XS3A__
    if (direct && w->by_xs3 && held == t->count) {
        nn_vpu_taps_xs3(w->groups, t, 0, to, pixels, w->count - 1);
        return;
    }
#endif
    for (const nn_vpu_group *group = w->groups; group < w->groups + w->count; group++) {
        for (int32_t i = 0; i < pixels; i++) {
            compute_pixel(v, w, group, direct, t->x + i * t->x_step, held, cut,
                          to + i * t->to_step);
            NN_VPU_SCALAR(6);
        }
        NN_VPU_SCALAR(6);
    }
}

/* Whether rows of taps reach the ring's last row. */
static int reaches_end(const walk *w, int32_t y, int32_t rows) {
    for (; rows > 0; rows--, y += w->g->dilation_h) {
        if (y % w->in->ring_rows == w->in->ring_rows - 1) {
            return 1;
        }
        NN_VPU_SCALAR(5);
    }
    return 0;
}

/* How many of `pixels` pixels have no taps beyond the columns that the unit can load; `left`: the
 * first one's. Below 1: none, or a ring of columns makes that hard to say. */
static int32_t safe_pixels(const walk *w, int32_t left, int32_t taps, int32_t pixels) {
    const int32_t beyond = w->safe - left - (taps - 1) * w->g->dilation_w;
    NN_VPU_SCALAR(12);
    return !w->straight || beyond < 0 ? 0 : nn_min(pixels, beyond / w->g->stride_w + 1);
}

/* The pixels of a row from column x0 to x1. */
static void compute_row(nn_vpu *v, walk *w, int32_t y, int32_t x0, int32_t x1) {
    const nn_conv_geometry *g = w->g;
    const int32_t top = y * g->stride_h - g->pad_top, width = g->kernel_w;
    const nn_taps rows = nn_valid_taps(top, w->in->height, g->kernel_h, g->dilation_h);
    const int8_t *row = nn_row(w->in, top + rows.first * g->dilation_h);
    int8_t *out = nn_out_row(w->out, y);
    nn_vpu_taps *t = &w->taps;
    const int careful = w->in->channels < NN_VPU_ACC &&
                        reaches_end(w, top + rows.first * g->dilation_h, rows.end - rows.first);
    t->head = rows.first * width;
    t->rows = rows.end - rows.first;
    t->tail = (g->kernel_h - rows.end) * width;
    NN_VPU_SCALAR(40);
    for (int32_t x = x0; x < x1;) {
        const int32_t left = x * g->stride_w - g->pad_left, inside = in_place(w, x, left, x1 - x);
        int32_t together = nn_max(inside, 1), direct = w->direct;
        nn_taps columns = {0, width};
        if (inside <= 0) {
            columns = nn_valid_taps(left, w->in->width, width, g->dilation_w);
        }
        t->before = columns.first;
        t->count = columns.end - columns.first;
        t->after = width - columns.end;
        if (t->count > 0) {
            t->x =
                row + nn_column(w->in, left + columns.first * g->dilation_w) * w->in->pixel_stride;
        }
        if (careful && direct) {
            const int32_t safe =
                safe_pixels(w, left + columns.first * g->dilation_w, t->count, together);
            direct = safe > 0;
            together = nn_max(safe, 1);
        }
        compute_pixels(v, w, direct, left + columns.first * g->dilation_w, together,
                       out + nn_column(w->out, x) * w->out->pixel_stride);
        x += together;
        NN_VPU_SCALAR(40);
    }
}

static void compute_rows(nn_vpu *v, walk *w, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        compute_row(v, w, y, window->x0, window->x1);
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
    w.taps.padding = w.padding;
    w.groups = groups;
    nn_vpu_open_groups(groups, NN_VPU_BATCH, &block);
    for (int32_t first = own->c0 / NN_VPU_ACC; first < end; first += NN_VPU_BATCH) {
        w.count = nn_min(end - first, NN_VPU_BATCH);
        open_groups(&v, &w, groups, first);
        compute_rows(&v, &w, &own->window);
    }
}

/* A call whose groups are one batch, where many pieces have to be made: its groups are ready. */
typedef struct {
    nn_vpu_block block;
    nn_vpu_group groups[NN_VPU_BATCH];
    walk w;
} prepared;

/* As `piece`, of a call that is prepared. */
static void piece_prepared(const nn_call *call, const nn_piece *own) {
    const prepared *p = (const prepared *)call->geometry;
    const int32_t first = own->c0 / NN_VPU_ACC;
    walk w = p->w;
    nn_vpu v;
    w.groups = p->groups + first;
    w.count = (own->c1 + NN_VPU_ACC - 1) / NN_VPU_ACC - first;
    compute_rows(&v, &w, &own->window);
    NN_VPU_SCALAR(80);
}

/* A window whose output lies over the input: batches of rows, each cut into pieces. */
NN_OUTLINE void compute_prepared(nn_call *call, int32_t groups, const nn_window *window) {
    prepared p;
    nn_vpu v;
    p.block = nn_vpu_open(call->constants, groups);
    p.w = opened((const nn_conv_geometry *)call->geometry, &p.block, call->in, call->out);
    p.w.taps.padding = p.w.padding;
    p.w.count = groups;
    nn_vpu_open_groups(p.groups, NN_VPU_BATCH, &p.block);
    open_groups(&v, &p.w, p.groups, 0);
    call->geometry = &p;
    call->body = piece_prepared;
    nn_split(call, window);
}

void nn_depthwise_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t groups = (out->channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
    nn_call call = {.body = piece,
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
    if (groups <= NN_VPU_BATCH && !nn_clear(&call, in)) {
        compute_prepared(&call, groups, window);
    } else {
        nn_split(&call, window);
    }
}
