/* MEAN over any axes on the VPU: sixteen outputs at a time where the last kept axis is contiguous.
 *
 * Constants: nn_mean_constants, then nn_mean_lanes. The reference's two roundings of a sum are a
 * step function of it. Where floor((bias + side * lift + sum * factor) / 2^(8 + shift)), with a
 * side of 1 or -1 as the sum is above or below its zero point, steps at the same sums, the packing
 * has found it by trying them all (packing.py); otherwise, and for sums that do not fit 16 bits,
 * the plain kernel computes.
 */
#include "nn_vpu_pool.h"
#include "nn_xcore_vpu.h"

#define GROUP 16

typedef struct {
    int32_t linear, bias, shift;
    int16_t times, factor; /* the factor is times * factor */
    int16_t rest, lift;    /* + rest; the lift is 64 * lift */
} nn_mean_lanes;

typedef struct {
    const nn_reduce_geometry *geometry;
    const int8_t *in;
    int8_t *out;
} mean;

typedef struct {
    nn_vpu_narrow narrow;
    nn_vpu_row ones, bias_high, bias_low, shift, factor, rest, zero_point, lift;
    int32_t times;
} factors;

static void open_factors(factors *f, int32_t zero_point, const nn_mean_lanes *c) {
    nn_vpu_open_narrow(&f->narrow);
    nn_vpu_splat(&f->ones, 0x0101);
    nn_vpu_splat_bias(&f->bias_high, &f->bias_low, c->bias);
    nn_vpu_splat(&f->shift, c->shift);
    nn_vpu_splat(&f->factor, c->factor);
    nn_vpu_splat(&f->rest, c->rest);
    nn_vpu_splat(&f->zero_point, -zero_point);
    nn_vpu_splat(&f->lift, c->lift);
    f->times = c->times;
}

/* Adds up the reduced dimensions of sixteen neighbours. */
static void sum_inner(nn_vpu *v, const nn_reduce_geometry *g, const int8_t *in) {
    const int32_t last = g->inner_rank - 1, rank = nn_max(last, 0);
    const int32_t count = last < 0 ? 1 : g->inner[last],
                  step = last < 0 ? 0 : g->inner_stride[last];
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        const int8_t *value = in + offset;
        for (int32_t i = 0; i < count; i++, value += step) {
            nn_vpu_vlmacc(v, value);
            NN_VPU_SCALAR(1);
        }
        NN_VPU_SCALAR(12);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
}

static void compute_group(nn_vpu *v, const factors *f, const nn_reduce_geometry *g,
                          const int8_t *in, int8_t *out, uint32_t mask) {
    nn_vpu_row sums, sides;
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vclrdr(v);
    nn_vpu_vldc(v, &f->ones);
    sum_inner(v, g, in);
    nn_vpu_vstr(v, &sums); /* the lower halves */
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vldr(v, &f->zero_point);
    nn_vpu_vladd(v, &sums);
    nn_vpu_vsign(v); /* 2^14 or minus that */
    nn_vpu_vstr(v, &sides);
    nn_vpu_vlashr(v, &sides, 8);
    nn_vpu_vstr(v, &sides);
    nn_vpu_vldd(v, &f->bias_high);
    nn_vpu_vldr(v, &f->bias_low);
    nn_vpu_vldc(v, &sums);
    for (int32_t n = 0; n < f->times; n++) {
        nn_vpu_vlmacc(v, &f->factor);
        NN_VPU_SCALAR(1);
    }
    nn_vpu_vlmacc(v, &f->rest);
    nn_vpu_vldc(v, &sides);
    nn_vpu_vlmacc(v, &f->lift);
    nn_vpu_vlsat(v, &f->shift);
    nn_vpu_put_bytes(v, &f->narrow, out, mask);
    NN_VPU_SCALAR(8);
}

#ifdef __XS3A__
typedef char factors_layout[offsetof(factors, times) == FACTORS_TIMES ? 1 : -1];
void nn_vpu_mean_xs3(const factors *f, const nn_vpu_pool_area *a);
#endif

/* The channels of a piece by the function in assembly, where up to two dimensions are reduced. */
static inline int by_xs3(const factors *f, const nn_reduce_geometry *g, const nn_piece *own,
                         const int8_t *in, int8_t *out) {
#ifdef __XS3A__
    const int32_t last = g->inner_rank - 1;
    if (last == 0 || last == 1) {
        nn_vpu_pool_area a = {.x = in + own->c0,
                              .rows = last > 0 ? g->inner[0] - 1 : 0,
                              .columns = g->inner[last] - 1,
                              .stride = g->inner_stride[last],
                              .row_step = g->inner_stride[0],
                              .ring_end = (const int8_t *)UINTPTR_MAX,
                              .out = out + own->c0};
        nn_vpu_open_groups_of_area(&a, own->c0, own->c1, GROUP);
        nn_vpu_mean_xs3(f, &a);
        return 1;
    }
#else
    (void)f, (void)g, (void)own, (void)in, (void)out;
#endif
    return 0;
}

static const nn_mean_lanes *lanes_of(const void *constants) {
    return (const nn_mean_lanes *)(const void *)((const nn_mean_constants *)constants + 1);
}

/* Rows of a piece: combinations of the kept axes but the last, which is the channels. */
static void piece(const nn_call *call, const nn_piece *own) {
    const mean *m = (const mean *)call->geometry;
    const nn_reduce_geometry *g = m->geometry;
    const int32_t rank = g->outer_rank - 1, width = g->outer[rank];
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    factors f;
    nn_vpu v;
    open_factors(&f, ((const nn_mean_constants *)call->constants)->sum_zero_point,
                 lanes_of(call->constants));
    for (int32_t row = 0; row < own->window.y1; row++) {
        if (row >= own->window.y0 && !by_xs3(&f, g, own, m->in + offset, m->out + row * width)) {
            for (int32_t c = own->c0; c < own->c1; c += GROUP) {
                const int32_t first = nn_min(c, own->c1 - GROUP);
                compute_group(&v, &f, g, m->in + offset + first, m->out + row * width + first,
                              0xFFFFU & (0xFFFFU << (c - first)));
            }
        }
        NN_VPU_SCALAR(15);
        nn_next(rank, g->outer, index, g->outer_stride, &offset);
    }
}

/* Whether all groups of sixteen lie where the unit can load and store them. */
static int on_vpu(const nn_reduce_geometry *g, const int8_t *in, const int8_t *out) {
    const int32_t last = g->outer_rank - 1;
    uintptr_t bits = (uintptr_t)in | (uintptr_t)out;
    if (last < 0 || g->outer_stride[last] != 1 || g->outer[last] < GROUP) {
        return 0;
    }
    for (int32_t i = 0; i < last; i++) {
        bits |= (uintptr_t)g->outer_stride[i];
    }
    for (int32_t i = 0; i < g->inner_rank; i++) {
        bits |= (uintptr_t)g->inner_stride[i];
    }
    return ((bits | (uintptr_t)g->outer[last]) & 3) == 0;
}

void nn_mean_s8_vpu(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const mean m = {g, in, out};
    int32_t rows = 1, count = 1;
    if (!lanes_of(constants)->linear || !on_vpu(g, in, out)) {
        nn_mean_s8(geometry, constants, in, out);
        return;
    }
    for (int32_t i = 0; i < g->outer_rank - 1; i++) {
        rows *= g->outer[i];
    }
    for (int32_t i = 0; i < g->inner_rank; i++) {
        count *= g->inner[i];
    }
    const int32_t width = g->outer[g->outer_rank - 1];
    const nn_view view = {out, width, width, rows, 1, 0, rows, 1, width};
    const nn_window window = {0, rows, 0, 1};
    const nn_call call = {.body = piece,
                          .geometry = &m,
                          .constants = constants,
                          .out = &view,
                          .channel_step = GROUP,
                          .issues = (width + GROUP - 1) / GROUP * (45 + 2 * count)};
    nn_split(&call, &window);
}
