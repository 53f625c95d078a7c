/* CONV_2D with one tap. Slices of 8 or 16 channels of a pair of groups are computed here, 8
 * channels of two pixels at a time; everything else is nn_conv2d_s8_vpu's.
 *
 * Such a slice comes with the records of its pair and with its own rows of weights. Of 8 channels
 * the even ones are in lanes 0 to 3 and the odd ones in lanes 4 to 7, of the second pixel; lanes 8
 * to 15 are the same of the first one.
 */
#include "nn_split.h"
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

#ifndef __XS3A__ /* where the functions in assembly are better */
#define EIGHT 8
#define EVEN_BYTES 0x55U
#define ODD_BYTES 0xAAU

/* How sums of some of the lanes become outputs; `bytes`: which of a pixel's 8 these are. */
typedef struct {
    nn_vpu_record record;
    nn_vpu_group group;
    uint32_t bytes;
} way;

/* Eight channels. The even ones' ways and the odd ones' are one if these are of one kind. */
typedef struct {
    NN_VPU_ALIGNED int16_t bias_high[NN_VPU_ACC], bias_low[NN_VPU_ACC];
    const int8_t *weights;
    int32_t row_bytes;
    int32_t ways;
    way way[2];
} eight;

typedef struct {
    const nn_conv_geometry *g;
    int32_t channel;
} task;

/* Four lanes of an array, from lane `at` on, into lanes `lane` and `lane` + 8; `bytes` a lane. */
static void copy_lanes(void *to, const void *from, int32_t bytes, int32_t at, int32_t lane) {
    const int8_t *source = (const int8_t *)from + at * bytes;
    memcpy((int8_t *)to + lane * bytes, source, (size_t)(4 * bytes));
    memcpy((int8_t *)to + (lane + EIGHT) * bytes, source, (size_t)(4 * bytes));
    NN_VPU_SCALAR(3 * bytes + 4);
}

static void copy_jumps(nn_vpu_record *to, const nn_vpu_record *from, int32_t at, int32_t lane) {
    for (int32_t i = 0; i < 4; i++) {
        const int32_t both = from->jumps[(at + i) % EIGHT] + 128;
        const int32_t jump = at < EIGHT ? both % 16 : both / 16;
        to->jumps[lane + i] = (int8_t)(17 * jump - 128);
    }
    NN_VPU_SCALAR(28);
}

/* Four channels, lanes of `from` from `at` on, become lanes `lane` and `lane` + 8 of a way. */
static void take(eight *e, way *to, const nn_vpu_record *from, int32_t at, int32_t lane) {
    nn_vpu_record *own = &to->record;
    const int scalar = from->mode & NN_VPU_MODE_SCALAR;
    own->mode |= from->mode;
    own->up = from->up;
    to->bytes |= lane == 0 ? EVEN_BYTES : ODD_BYTES;
    copy_lanes(scalar ? own->bias_high : e->bias_high, from->bias_high, 2, at, lane);
    copy_lanes(scalar ? own->bias_low : e->bias_low, from->bias_low, 2, at, lane);
    NN_VPU_SCALAR(12);
    if (scalar) {
        copy_lanes(own->as.scalar.multiplier, from->as.scalar.multiplier, 4, at, lane);
        copy_lanes(own->as.scalar.shift, from->as.scalar.shift, 1, at, lane);
    } else if (from->mode & NN_VPU_MODE_ON16) {
        copy_lanes(own->as.on16.down, from->as.on16.down, 2, at, lane);
        copy_lanes(own->as.on16.factor, from->as.on16.factor, 2, at, lane);
        copy_lanes(own->as.on16.offset, from->as.on16.offset, 2, at, lane);
    } else {
        copy_lanes(own->as.unit.high, from->as.unit.high, 2, at, lane);
        copy_lanes(own->as.unit.high_low, from->as.unit.high_low, 2, at, lane);
        copy_lanes(own->as.unit.offset_high, from->as.unit.offset_high, 2, at, lane);
        copy_lanes(own->as.unit.offset_low, from->as.unit.offset_low, 2, at, lane);
        copy_lanes(own->as.unit.shifts, from->as.unit.shifts, 1, at, lane);
        copy_jumps(own, from, at, lane);
    }
}

static int of_one_kind(const nn_vpu_record *a, const nn_vpu_record *b) {
    const int32_t kinds = NN_VPU_MODE_SCALAR | NN_VPU_MODE_ON16 | NN_VPU_MODE_FINE;
    return (a->mode & kinds) == (b->mode & kinds) && a->up == b->up;
}

/* Zeros for the lanes that a way does not have. */
static void open_ways(eight *e, const nn_vpu_block *b) {
    const int32_t modes = b->records[0].mode | b->records[1].mode;
    e->ways = of_one_kind(&b->records[0], &b->records[1]) ? 1 : 2;
    for (int32_t i = 0; i < e->ways; i++) {
        if (e->ways > 1 || (modes & NN_VPU_MODE_SCALAR)) {
            memset(&e->way[i].record, 0, sizeof e->way[i].record);
            NN_VPU_SCALAR((int32_t)sizeof e->way[i].record / 4);
        }
        e->way[i].record.mode = 0;
        e->way[i].bytes = 0;
    }
    if (modes & NN_VPU_MODE_SCALAR) {
        memset(e->bias_high, 0, sizeof e->bias_high);
        memset(e->bias_low, 0, sizeof e->bias_low);
        NN_VPU_SCALAR(16);
    }
    NN_VPU_SCALAR(16);
}

/* Eight channels of a pair, from channel `first` of it on; their rows of weights. */
static void open_eight(nn_vpu *v, eight *e, const nn_vpu_block *b, int32_t first,
                       const int8_t *weights, int32_t row_bytes) {
    open_ways(e, b);
    e->weights = weights;
    e->row_bytes = row_bytes;
    take(e, &e->way[0], &b->records[0], first / 2, 0);
    take(e, &e->way[e->ways - 1], &b->records[1], first / 2, 4);
    for (int32_t i = 0; i < e->ways; i++) {
        nn_vpu_ready(v, &e->way[i].group, &e->way[i].record, 1, 0);
    }
    NN_VPU_SCALAR(16);
}

/* vC times the rows of eight channels. */
static inline void multiply(nn_vpu *v, const int8_t *weights, int32_t row_bytes) {
    for (int32_t i = 0; i < EIGHT / 2; i++) {
        nn_vpu_vlmaccr(v, weights + (7 - 2 * i) * row_bytes);
    }
    for (int32_t i = 0; i < EIGHT / 2; i++) {
        nn_vpu_vlmaccr(v, weights + (6 - 2 * i) * row_bytes);
    }
    NN_VPU_MAC(1 + EIGHT); /* with the load of vC */
}

/* Up to 32 inputs of two pixels, where the unit cannot load them or they are fewer: behind zeros.
 */
NN_OUTLINE void multiply_apart(nn_vpu *v, const eight *e, int32_t at, int32_t bytes,
                               const int8_t *first, const int8_t *second) {
    NN_VPU_ALIGNED int8_t copy[2][NN_VPU_BYTES] = {{0}};
    const int32_t before = nn_vpu_before_rest(bytes);
    const int8_t *weights = e->weights + at - before;
    memcpy(copy[0] + before, first + at, (size_t)bytes);
    memcpy(copy[1] + before, second + at, (size_t)bytes);
    NN_VPU_SCALAR(20 + 4 * bytes);
    nn_vpu_vldc(v, copy[0]);
    multiply(v, weights, e->row_bytes);
    nn_vpu_vldc(v, copy[1]);
    multiply(v, weights, e->row_bytes);
}

/* Stores the lanes of y that a way has, as the outputs of both pixels. */
static inline void put(nn_vpu *v, uint32_t bytes, int8_t *first, int8_t *second) {
    NN_VPU_ALIGNED int16_t y[NN_VPU_ACC + 12] = {0}; /* the last ones are read, not stored */
    nn_vpu_vstr(v, y);
    if (bytes & EVEN_BYTES) {
        nn_vpu_vlashr(v, y, 8);
        nn_vpu_vstrpv(v, second, EVEN_BYTES);
        nn_vpu_vlashr(v, y + 8, 8);
        nn_vpu_vstrpv(v, first, EVEN_BYTES);
    }
    if (bytes & ODD_BYTES) {
        nn_vpu_vldr(v, y + 4);
        nn_vpu_vstrpv(v, second, ODD_BYTES);
        nn_vpu_vldr(v, y + 12);
        nn_vpu_vstrpv(v, first, ODD_BYTES);
    }
    NN_VPU_SCALAR(4);
}

/* The same of a scalar way, from the sums in the accumulators. */
NN_OUTLINE void put_scalars(nn_vpu *v, const way *w, const nn_conv_constants *common, int8_t *first,
                            int8_t *second) {
    NN_VPU_ALIGNED int16_t high[NN_VPU_ACC], low[NN_VPU_ACC];
    const nn_vpu_record *record = &w->record;
    nn_vpu_vstd(v, high);
    nn_vpu_vstr(v, low);
    for (int32_t i = 0; i < NN_VPU_ACC; i++) {
        const int32_t byte = i % 4 * 2 + i / 4 % 2;
        NN_VPU_SCALAR(3);
        if (w->bytes >> byte & 1) {
            const int32_t sum = (int32_t)high[i] * 65536 + (uint16_t)low[i];
            const int32_t bias =
                (int32_t)record->bias_high[i] * 65536 + (uint16_t)record->bias_low[i];
            const nn_channel channel = {bias, record->as.scalar.multiplier[i],
                                        record->as.scalar.shift[i]};
            (i < EIGHT ? second : first)[byte] = nn_conv_output(sum, &channel, common);
            NN_VPU_SCALAR(23);
        }
    }
}

/* The outputs of two pixels, whose sums are in the accumulators, at addresses that are multiples
 * of 4. */
static inline void finish(nn_vpu *v, const nn_vpu_block *b, const eight *e, int8_t *first,
                          int8_t *second) {
    NN_VPU_ALIGNED int16_t high[NN_VPU_ACC], low[NN_VPU_ACC];
    if (e->ways > 1) {
        nn_vpu_vstd(v, high);
        nn_vpu_vstr(v, low);
    }
    for (int32_t i = 0; i < e->ways; i++) {
        const way *w = &e->way[i];
        if (i > 0) {
            nn_vpu_vldd(v, high);
            nn_vpu_vldr(v, low);
        }
        NN_VPU_SCALAR(8);
        if (w->record.mode & NN_VPU_MODE_SCALAR) {
            put_scalars(v, w, b->common, first, second);
            continue;
        }
        if (w->record.mode & NN_VPU_MODE_ON16) {
            nn_vpu_scale_on16(v, &w->record);
        } else {
            nn_vpu_scale(v, &w->group);
        }
        if (b->bounded) {
            nn_vpu_bound(v, b);
        }
        put(v, w->bytes, first, second);
    }
}

/* Eight channels of two pixels, which may be the same one. */
static inline void two_pixels(nn_vpu *v, const nn_vpu_block *b, const eight *e, int32_t inputs,
                              const int8_t *x0, const int8_t *x1, int8_t *to0, int8_t *to1) {
    NN_VPU_ALIGNED int8_t apart[2][EIGHT];
    const int aligned = (((uintptr_t)to0 | (uintptr_t)to1) & 3) == 0;
    int32_t i = 0;
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vldd(v, e->bias_high);
    nn_vpu_vldr(v, e->bias_low);
    if ((((uintptr_t)x0 | (uintptr_t)x1) & 3) == 0) {
        for (; i + NN_VPU_BYTES <= inputs; i += NN_VPU_BYTES) {
            nn_vpu_vldc(v, x0 + i);
            multiply(v, e->weights + i, e->row_bytes);
            nn_vpu_vldc(v, x1 + i);
            multiply(v, e->weights + i, e->row_bytes);
            NN_VPU_SCALAR(1);
        }
    }
    for (; i < inputs; i += NN_VPU_BYTES) {
        multiply_apart(v, e, i, nn_min(inputs - i, NN_VPU_BYTES), x0, x1);
    }
    finish(v, b, e, aligned ? to0 : apart[0], aligned ? to1 : apart[1]);
    NN_VPU_SCALAR(8);
    if (!aligned) {
        memcpy(to0, apart[0], EIGHT);
        memcpy(to1, apart[1], EIGHT);
        NN_VPU_SCALAR(6 * EIGHT);
    }
}

/* Pixels of a row, where they lie one step after the other. */
static void run(nn_vpu *v, const nn_call *call, const nn_vpu_block *b, const eight *e,
                const int8_t *from, int8_t *to, int32_t pixels) {
    const task *t = (const task *)call->geometry;
    const int32_t step = t->g->stride_w * call->in->pixel_stride;
    const int32_t out_step = call->out->pixel_stride;
    for (int32_t left = pixels; left > 0; left -= 2) {
        const int32_t second = left > 1;
        two_pixels(v, b, e, call->in->channels, from, from + second * step, to,
                   to + second * out_step);
        from += 2 * step;
        to += 2 * out_step;
        NN_VPU_SCALAR(6);
    }
    NN_VPU_SCALAR(8);
}

/* Whether a row's first pixel is one step behind the last of the row before. */
static int goes_on(const nn_view *view) {
    NN_VPU_SCALAR(8);
    return view->row_stride == view->width * view->pixel_stride && view->x0 == 0 &&
           view->ring_rows == view->height && view->ring_cols == view->width;
}

/* The pixels of a window. */
static void compute(nn_vpu *v, const nn_call *call, const nn_vpu_block *b, const eight *e,
                    const nn_window *window, int32_t channel) {
    const nn_conv_geometry *g = ((const task *)call->geometry)->g;
    const nn_view *in = call->in, *out = call->out;
    if (g->stride_h == 1 && g->stride_w == 1 && window->x0 == 0 && window->x1 == in->width &&
        window->x1 == out->width && goes_on(in) && goes_on(out)) {
        run(v, call, b, e, nn_row(in, window->y0), nn_out_row(out, window->y0) + channel,
            (window->y1 - window->y0) * in->width);
        return;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t left = x * g->stride_w;
            const int32_t held = (nn_run(in, left, in->width - left) - 1) / g->stride_w + 1;
            const int32_t pixels = nn_min(held, nn_run(out, x, window->x1 - x));
            run(v, call, b, e, nn_pixel(in, y * g->stride_h, left),
                nn_out_pixel(out, y, x) + channel, pixels);
            x += pixels;
            NN_VPU_SCALAR(40);
        }
    }
}

static void piece(const nn_call *call, const nn_piece *own) {
    const task *t = (const task *)call->geometry;
    const nn_vpu_block b = nn_vpu_open(call->constants, 2);
    const int32_t row_bytes = nn_vpu_row_bytes(call->in->channels);
    nn_vpu v;
    for (int32_t c = 0; c < call->out->channels; c += EIGHT) {
        eight e;
        open_eight(&v, &e, &b, (t->channel + c) % NN_VPU_BYTES, b.weights + c * row_bytes,
                   row_bytes);
        compute(&v, call, &b, &e, &own->window, c);
    }
}

#endif

void nn_conv2d_1x1_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window,
                          void *scratch, int32_t channel) {
#ifdef __XS3A__
    nn_conv2d_s8_vpu(geometry, constants, in, out, window, scratch, channel);
#else
    const task own = {geometry, channel};
    const nn_call call = {.body = piece,
                          .geometry = &own,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = geometry->stride_h,
                          .issues = nn_vpu_groups(out->channels) *
                                    (20 * nn_vpu_chunks(in->channels) + 60)};
    if (out->channels > NN_VPU_ACC || out->channels % EIGHT > 0 || channel % EIGHT > 0 ||
        !nn_vpu_of_pair(constants)) {
        nn_conv2d_s8_vpu(geometry, constants, in, out, window, scratch, channel);
        return;
    }
    nn_split(&call, window);
#endif
}
