/* CONV_2D of one group, any kernel size: 16 output channels of a pixel at a time, all pixels for
 * some groups of channels, then for others.
 *
 * Inputs are read in place where the unit can: rows of taps that lie side by side and fill 32 bytes
 * each, or single taps that do, at addresses that are multiples of 4. Otherwise the taps of a pixel
 * are collected in scratch first.
 */
#include "nn_split.h"
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

typedef struct prepared prepared;

/* A call's geometry, and the first channel of its slice. */
typedef struct {
    const nn_conv_geometry *g;
    int32_t channel;
    prepared *prepared; /* what all pieces share, or NULL */
} task;

/* How the taps of a pixel are collected: rows that lie row_step apart in a ring, each of `bytes`
 * bytes between `before` and `after` bytes of padding; above and below them more padding. */
typedef struct {
    int32_t head, rows, before, bytes, after, tail, row_step, ring;
    const int8_t *ring_end;
    uint32_t value; /* a word of padding */
    int32_t padded; /* whether there is any */
    int32_t words;  /* whether all of these and all addresses are multiples of 4 */
    int8_t *to;
    int32_t x_step, to_step; /* from pixel to pixel, of inputs and of outputs */
} nn_vpu_patch;

#ifdef __XS3A__
typedef char patch_layout[sizeof(nn_vpu_patch) == 4 * (PATCH_X_STEP + 2) ? 1 : -1];
void nn_vpu_collect_xs3(const nn_vpu_patch *p, int8_t *to, const int8_t *from);
void nn_vpu_patches_xs3(const nn_vpu_patch *p, const int8_t *from, int8_t *to, int32_t pixels,
                        const nn_vpu_group *groups, const nn_vpu_runs *runs, int32_t more);
#endif

/* What all pixels of a call share. */
typedef struct {
    const nn_conv_geometry *g;
    const nn_view *in, *out;
    const nn_vpu_block *block;
    const nn_vpu_few *few;      /* the channels of a narrow slice; otherwise */
    const nn_vpu_group *groups; /* groups of output channels, */
    int32_t count;              /* those that are computed together */
    int32_t weight_row;         /* bytes of a channel's weights */
    int32_t row_bytes;          /* of a row of taps */
    int joined;         /* a row of taps lies side by side, where the ring does not cut it */
    int direct;         /* rows of taps can be read in place */
    int32_t together;   /* pixels of the window that are one run, or 0; then */
    const int8_t *from; /* the first one's inputs */
    int8_t *to;         /* and outputs */
    nn_vpu_runs runs;   /* rows of taps in place, and */
    nn_vpu_runs apart;  /* in the patch */
    int8_t *patch;      /* where taps are collected, */
    nn_vpu_patch shape; /* and how */
} walk;

/* `rest`: see nn_vpu_runs. */
static walk opened(nn_vpu *v, const nn_conv_geometry *g, const nn_view *in, const nn_view *out,
                   void *scratch, int8_t *rest) {
    walk w;
    const int32_t all = g->kernel_h * g->kernel_w * in->channels;
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
    w.weight_row = nn_vpu_row_bytes(all);
    nn_vpu_open_runs(v, &w.runs, g->kernel_h, w.row_bytes,
                     g->dilation_h % in->ring_rows * in->row_stride, rest);
    w.runs.x_step = g->stride_w * in->pixel_stride;
    w.runs.to_step = out->pixel_stride;
    w.runs.ring = in->ring_rows * in->row_stride;
    w.runs.ring_end = in->data + w.runs.ring;
    w.runs.end = NULL; /* of a row, see compute */
    w.apart = w.runs;
    w.apart.x_step = 0; /* a single pixel */
    nn_vpu_open_runs(v, &w.apart, 1, all, 0, rest);
    w.shape.row_step = g->dilation_h % in->ring_rows * in->row_stride;
    w.shape.to = w.patch;
    w.shape.x_step = w.runs.x_step;
    w.shape.to_step = w.runs.to_step;
    w.shape.ring = w.runs.ring;
    w.shape.ring_end = w.runs.ring_end;
    w.shape.words =
        ((in->channels | (int32_t)(intptr_t)in->data | in->row_stride | in->pixel_stride) & 3) == 0;
    if (w.patch != NULL) {
        w.apart.end = w.patch + nn_vpu_chunks(all) * NN_VPU_BYTES;
    }
    NN_VPU_SCALAR(60);
    return w;
}

static inline int8_t *fill(int8_t *to, int32_t value, int32_t bytes) {
    if (bytes > 0) {
        memset(to, value, (size_t)bytes);
        NN_VPU_SCALAR(2 * bytes + 1);
    }
    NN_VPU_SCALAR(1);
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

/* How many of `pixels` pixels from column x on can be read and written one step after the other. */
static int32_t in_place(const walk *w, int32_t x, int32_t left, int32_t pixels) {
    const nn_conv_geometry *g = w->g;
    const int32_t stride = g->stride_w, last = w->in->width - g->kernel_w;
    NN_VPU_SCALAR(20);
    if (left < 0 || left > last) {
        return 0;
    }
    const int32_t held =
        nn_run(w->in, left, w->in->width) - g->kernel_w; /* past the first one's taps */
    pixels = nn_min(pixels, nn_min(last - left, held) / stride + 1);
    return held < 0 ? 0 : nn_run(w->out, x, pixels);
}

/* The outputs of pixels; `narrow`: of a narrow slice. */
static inline void compute_pixels(nn_vpu *v, const walk *w, const nn_vpu_runs *runs,
                                  const int8_t *x, int8_t *to, int32_t pixels, const int narrow) {
    if (!narrow) {
        nn_vpu_pixels(v, w->block, w->groups, w->count, runs, x, to, pixels);
        return;
    }
    nn_vpu_pixels_few(v, w->block, w->few, runs, x, to, pixels);
}

/* Collects a pixel's taps as w->shape says, the first row that meets the input from `from` on. */
static inline void collect_rows(nn_vpu *v, const walk *w, const int8_t *from) {
#ifdef __XS3A__
    (void)v;
    nn_vpu_collect_xs3(&w->shape, w->patch, from);
#else
    const nn_vpu_patch *p = &w->shape;
    const int8_t value = (int8_t)p->value;
    int8_t *to = fill(w->patch, value, p->head);
    for (int32_t k = p->rows; k > 0; k--) {
        to = fill(to, value, p->before);
        nn_vpu_copy(v, to, from, p->bytes);
        to = fill(to + p->bytes, value, p->after);
        from += p->row_step;
        from = from >= p->ring_end ? from - p->ring : from;
        NN_VPU_SCALAR(6);
    }
    fill(to, value, p->tail);
    NN_VPU_SCALAR(24);
#endif
}

/* Finds the shape of a pixel's taps; returns whether each row of them lies side by side. */
static int find_shape(walk *w, int32_t left, nn_taps rows, nn_taps columns) {
    const nn_conv_geometry *g = w->g;
    const int32_t channels = w->in->channels, taps = columns.end - columns.first;
    nn_vpu_patch *p = &w->shape;
    NN_VPU_SCALAR(30);
    if (!w->joined || taps <= 0 || rows.first >= rows.end ||
        nn_run(w->in, left + columns.first, taps) < taps) {
        return 0;
    }
    p->value = 0x01010101U * (uint8_t)w->block->common->input_zero_point;
    p->head = rows.first * w->row_bytes;
    p->rows = rows.end - rows.first;
    p->before = columns.first * channels;
    p->bytes = taps * channels;
    p->after = w->row_bytes - p->before - p->bytes;
    p->tail = (g->kernel_h - rows.end) * w->row_bytes;
    p->padded = p->rows < g->kernel_h || taps < g->kernel_w;
    return 1;
}

/* Pixels of a row from column x on, whose taps are collected; returns how many. `together`: those
 * whose taps are all in the input's columns. */
static inline int32_t compute_apart(nn_vpu *v, walk *w, int32_t top, int32_t left, nn_taps rows,
                                    int32_t together, int8_t *to, const int narrow) {
    const nn_conv_geometry *g = w->g;
    const nn_taps columns = nn_valid_taps(left, w->in->width, g->kernel_w, g->dilation_w);
    const int8_t *from;
    if (!find_shape(w, left, rows, columns)) {
        collect(v, w, top, left, rows, columns, w->block->common->input_zero_point);
        compute_pixels(v, w, &w->apart, w->patch, to, 1, narrow);
        NN_VPU_SCALAR(16);
        return 1;
    }
    from = nn_pixel(w->in, top + rows.first * g->dilation_h, left + columns.first);
#ifdef __XS3A__
    if (!narrow && nn_vpu_by_xs3(&w->apart, w->patch, to, 1)) {
        nn_vpu_patches_xs3(&w->shape, from, to, nn_max(together, 1), w->groups, &w->apart,
                           w->count - 1);
        return nn_max(together, 1);
    }
#endif
    for (int32_t i = nn_max(together, 1); i > 0; i--) {
        collect_rows(v, w, from);
        compute_pixels(v, w, &w->apart, w->patch, to, 1, narrow);
        from += w->runs.x_step;
        to += w->runs.to_step;
        NN_VPU_SCALAR(12);
    }
    return nn_max(together, 1);
}

/* Whether rows of whole pixels follow one another without a seam. */
static int goes_on(const nn_view *view) {
    return view->row_stride == view->width * view->pixel_stride && view->x0 == 0 &&
           view->ring_rows == view->height && view->ring_cols == view->width;
}

/* Finds out whether a window's pixels are one run, of input and output. */
static void find_run(walk *w, const nn_window *window) {
    const nn_conv_geometry *g = w->g;
    NN_VPU_SCALAR(24);
    w->together = 0;
    if (g->kernel_h == 1 && g->kernel_w == 1 && g->stride_h == 1 && g->stride_w == 1 &&
        g->pad_top == 0 && g->pad_left == 0 && window->x0 == 0 && window->x1 == w->out->width &&
        w->in->width == w->out->width && goes_on(w->in) && goes_on(w->out)) {
        w->together = (window->y1 - window->y0) * w->out->width;
        w->from = nn_row(w->in, window->y0);
        w->to = nn_out_row(w->out, window->y0);
        w->runs.end = nn_vpu_row_end(w->in, window->y1 - 1, 0);
    }
}

/* The pixels of a window (template). */
static inline __attribute__((always_inline)) void
compute(nn_vpu *v, walk *w, const nn_window *window, const int narrow) {
    const nn_conv_geometry *g = w->g;
    if (w->together > 0) {
        compute_pixels(v, w, &w->runs, w->from, w->to, w->together, narrow);
        return;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, w->in->height, g->kernel_h, g->dilation_h);
        const int direct = w->direct && rows.end - rows.first == g->kernel_h;
        if (direct && g->kernel_h == 1) { /* otherwise runs have no rest */
            w->runs.end = nn_vpu_row_end(w->in, top, y + 1 < window->y1);
        }
        NN_VPU_SCALAR(24);
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const int32_t together = w->joined ? in_place(w, x, left, window->x1 - x) : 0;
            int8_t *to = nn_out_pixel(w->out, y, x);
            if (direct && together > 0) {
                compute_pixels(v, w, &w->runs, nn_pixel(w->in, top, left), to, together, narrow);
                x += together;
            } else {
                x += compute_apart(v, w, top, left, rows, together, to, narrow);
            }
            NN_VPU_SCALAR(12);
        }
    }
}

/* Groups of 16 channels that lie in [c0, c1); cuts are between pairs of them. */
static void piece(const nn_call *call, const nn_piece *own) {
    const nn_vpu_block block = nn_vpu_open(call->constants, nn_vpu_groups(call->out->channels));
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
    nn_vpu_group groups[NN_VPU_BATCH];
    nn_vpu v;
    walk w = opened(&v, ((const task *)call->geometry)->g, call->in, call->out, own->scratch, rest);
    const int32_t end = nn_vpu_groups(own->c1);
    w.block = &block;
    w.few = NULL;
    w.groups = groups;
    nn_vpu_vsetc(&v, NN_VPU_S8);
    find_run(&w, &own->window);
    nn_vpu_open_groups(groups, NN_VPU_BATCH, &block);
    const int all = w.together > 0 && nn_vpu_all_by_xs3(&w.runs, w.from, w.to, w.together);
    for (int32_t first = own->c0 / NN_VPU_ACC; first < end; first += NN_VPU_BATCH) {
        w.count = nn_min(end - first, NN_VPU_BATCH);
        nn_vpu_members(&v, &block, call->out->channels, w.weight_row, first, w.count, groups);
        if (w.together > 0) {
            nn_vpu_pixels_known(&v, &block, groups, w.count, &w.runs, w.from, w.to, w.together,
                                all);
        } else {
            compute(&v, &w, &own->window, 0);
        }
    }
}

/* A call whose groups are one batch, where many pieces have to be made: its groups are ready. */
struct prepared {
    nn_vpu_block block;
    nn_vpu_group groups[NN_VPU_BATCH];
    walk w;
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
};

static void prepare(prepared *p, const task *t, const nn_call *call) {
    const int32_t channels = call->out->channels;
    nn_vpu v;
    p->block = nn_vpu_open(call->constants, nn_vpu_groups(channels));
    p->w = opened(&v, t->g, call->in, call->out, call->scratch, p->rest);
    p->w.block = &p->block;
    p->w.few = NULL;
    nn_vpu_open_groups(p->groups, NN_VPU_BATCH, &p->block);
    nn_vpu_members(&v, &p->block, channels, p->w.weight_row, 0, nn_vpu_groups(channels), p->groups);
}

/* Lets runs have a rest at another place, which has zeros. */
static void move_rest(nn_vpu_runs *runs, int8_t *rest) {
    runs->rest_to = rest + (runs->rest_to - runs->rest);
    runs->rest = rest;
}

/* As `piece`, of a call that is prepared. */
static void piece_prepared(const nn_call *call, const nn_piece *own) {
    const prepared *p = ((const task *)call->geometry)->prepared;
    const int32_t first = own->c0 / NN_VPU_ACC;
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
    nn_vpu v;
    walk w = p->w;
    nn_vpu_vclrdr(&v);
    nn_vpu_vstr(&v, rest);
    move_rest(&w.runs, rest);
    move_rest(&w.apart, rest);
    if (own->scratch != NULL) {
        w.apart.end += (int8_t *)own->scratch - w.patch;
        w.patch = w.shape.to = (int8_t *)own->scratch;
    }
    w.groups = p->groups + first;
    w.count = nn_vpu_groups(own->c1) - first;
    find_run(&w, &own->window);
    compute(&v, &w, &own->window, 0);
    NN_VPU_SCALAR(100);
}

/* A narrow slice of the output channels. */
static void piece_few(const nn_call *call, const nn_piece *own) {
    const task *t = (const task *)call->geometry;
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
    nn_vpu_few few;
    nn_vpu v;
    walk w = opened(&v, t->g, call->in, call->out, own->scratch, rest);
    const nn_vpu_block block = nn_vpu_open_of_few(call->constants);
    nn_vpu_open_few(&v, &few, &block, call->out->channels, t->channel, w.weight_row);
    w.block = &block;
    w.few = &few;
    w.groups = few.group;
    w.count = 1;
    find_run(&w, &own->window);
    compute(&v, &w, &own->window, 1);
}

/* A window whose output lies over the input: batches of rows, each cut into pieces. */
NN_OUTLINE void compute_prepared(nn_call *call, task *own, const nn_window *window) {
    prepared p;
    prepare(&p, own, call);
    own->prepared = &p;
    call->body = piece_prepared;
    nn_split(call, window);
}

/* The call that computes a window; `alone`: a single thread does. */
static void compute_window(task *own, const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window, void *scratch, int alone) {
    const nn_conv_geometry *g = own->g;
    const int few = nn_vpu_is_few(constants, out->channels, own->channel);
    const int32_t blocks = nn_vpu_chunks(g->kernel_h * g->kernel_w * in->channels);
    nn_call call = {.body = few ? piece_few : piece,
                    .geometry = own,
                    .constants = constants,
                    .in = in,
                    .out = out,
                    .scratch = scratch,
                    .scratch_bytes = blocks * NN_VPU_BYTES,
                    .kernel_h = (g->kernel_h - 1) * g->dilation_h + 1,
                    .stride_h = g->stride_h,
                    .pad_top = g->pad_top,
                    .channel_step = few ? 0 : 2 * NN_VPU_ACC,
                    .channels_first = out->channels > NN_VPU_ACC,
                    .issues = alone ? 0 : nn_vpu_groups(out->channels) * (18 * blocks + 40)};
    if (!few && out->channels <= NN_VPU_BATCH * NN_VPU_ACC && !nn_clear(&call, in)) {
        compute_prepared(&call, own, window);
    } else {
        nn_split(&call, window);
    }
}

void nn_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch, int32_t channel) {
    task own = {geometry, channel, NULL};
    compute_window(&own, constants, in, out, window, scratch, 0);
}

void nn_conv2d_alone_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch, int32_t channel) {
    task own = {geometry, channel, NULL};
    compute_window(&own, constants, in, out, window, scratch, 1);
}
