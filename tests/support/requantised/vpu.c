/* Kernels for xcore's vector unit: their arithmetic written down a second time, quick, and for some
 * of the sums the kernels themselves, on the unit's model in C (nn_vpu_model.h). */
#include "sums.h"

#include "../../../kernels/xcore_vpu/nn_vpu_requantise.h"

#define SAMPLED 61 /* one chunk of so many is computed by the kernels as well */

/* A channel's place: its group, lane and the order of the group's outputs. */
typedef struct {
    const nn_vpu_record *record;
    int32_t lane;
    nn_vpu_order order;
} place;

/* Pairs of groups, a rest of up to 16 channels alone; the last depthwise group is made of the
 * last 16. */
static place place_of(const layer *l, int32_t c) {
    const nn_vpu_record *records =
        (const nn_vpu_record *)(const void *)((const nn_conv_constants *)l->block + 1);
    const int32_t pair = c / 32, rest = l->channels - 32 * pair;
    place p = {records + 2 * pair + c % 2, c % 32 / 2, c % 2 ? NN_VPU_ODD : NN_VPU_EVEN};
    if (l->depthwise) {
        p.record = records + c / 16;
        p.lane = c - nn_min(c / 16 * 16, nn_max(l->channels - 16, 0));
        p.order = NN_VPU_ALONE;
    } else if (rest <= 16) {
        p.record = records + 2 * pair;
        p.lane = c % 32;
        p.order = NN_VPU_ALONE;
    }
    return p;
}

/* ---- the kernels ---------------------------------------------------------------------------- */

/* A record whose lanes are all the channel's. */
static nn_vpu_record of_all_lanes(const place *p) {
    nn_vpu_record r = *p->record;
    const int32_t from = p->lane;
    const int32_t both = r.jumps[from % 8] + 128, jump = from < 8 ? both % 16 : both / 16;
    for (int32_t i = 0; i < 16; i++) {
        r.jumps[i % 8] = (int8_t)(17 * jump - 128);
        r.bias_high[i] = p->record->bias_high[from];
        r.bias_low[i] = p->record->bias_low[from];
        if (r.mode & NN_VPU_MODE_SCALAR) {
            r.as.scalar.multiplier[i] = p->record->as.scalar.multiplier[from];
            r.as.scalar.low[i] = p->record->as.scalar.low[from];
            r.as.scalar.shift[i] = p->record->as.scalar.shift[from];
        } else if (r.mode & NN_VPU_MODE_ON16) {
            r.as.on16.down[i] = p->record->as.on16.down[from];
            r.as.on16.factor[i] = p->record->as.on16.factor[from];
            r.as.on16.offset[i] = p->record->as.on16.offset[from];
        } else {
            r.as.unit.high[i] = p->record->as.unit.high[from];
            r.as.unit.high_low[i] = p->record->as.unit.high_low[from];
            r.as.unit.offset_high[i] = p->record->as.unit.offset_high[from];
            r.as.unit.offset_low[i] = p->record->as.unit.offset_low[from];
            r.as.unit.shifts[i] = p->record->as.unit.shifts[from];
        }
    }
    return r;
}

/* Of `count` sums, each without its bias. */
static void by_kernels(const layer *l, const place *p, int32_t products, int32_t count,
                       int8_t *out) {
    const nn_vpu_record record = of_all_lanes(p);
    const int32_t step = p->order == NN_VPU_ALONE ? 1 : 2;
    nn_vpu_block b = nn_vpu_open(l->block, 0);
    nn_vpu_group group;
    nn_vpu v = {0};
    nn_vpu_open_groups(&group, 1, &b);
    nn_vpu_ready(&v, &group, &record, 1, 0);
    group.scalar = l->dense ? nn_vpu_scalar_of_dense : nn_vpu_scalar_of_conv;
    nn_vpu_place(&group, &b, p->order, 0, 16 * step);
    for (int32_t first = 0; first < count; first += 16) {
        NN_VPU_ALIGNED int8_t bytes[32];
        nn_vpu_biases(&v, &group);
        for (int32_t i = 0; i < 16; i++) {
            nn_vpu_set_acc(&v, i, nn_vpu_acc(&v, i) + products + first + i);
        }
        nn_vpu_finish(&v, &b, &group, bytes);
        for (int32_t i = 0; i < 16 && first + i < count; i++) {
            out[first + i] = bytes[step * i + (p->order == NN_VPU_ODD)];
        }
    }
}

/* ---- the same arithmetic, an element at a time, from the description in nn_vpu_requantise.h -- */

static inline int32_t element(int32_t value) {
    return value > 32767 ? 32767 : value < -32767 ? -32767 : value;
}

/* A value in 256ths is moved to where it saturates and back, each in two steps. */
static inline int32_t moved(int32_t y, int32_t by, int32_t sign) {
    return element(element(y + sign * (by / 2)) + sign * (by - by / 2));
}

/* `mode` and `order` are known when this is compiled. */
static inline __attribute__((always_inline)) void
quickly(const layer *l, const place *p, int32_t products, int32_t count, int8_t *out,
        const int wide, const int is_signed, const int fine, const int bounded,
        const nn_vpu_order order) {
    const nn_vpu_record *r = p->record;
    const int32_t i = p->lane, both = r->jumps[i % 8] + 128, jump = i < 8 ? both % 16 : both / 16;
    const int32_t shift = (r->as.unit.shifts[i] + 128) / 16,
                  down = (r->as.unit.shifts[i] + 128) % 16;
    const int32_t bias = r->bias_high[i] * 65536 + (uint16_t)r->bias_low[i];
    const int32_t high = r->as.unit.high[i], high_low = r->as.unit.high_low[i];
    const int32_t offset = r->as.unit.offset_high[i] * 65536, near0 = r->as.unit.offset_low[i];
    const int32_t low = fine ? (high + 2) >> 2 : (high + (1 << shift >> 1)) >> shift;
    const int32_t step = jump == 15 ? 0 : jump == 0 ? 16383 : 1 << (14 - jump);
    const int32_t jumped = element((32767 * step + 8192) >> 14), half = 1 << down >> 1;
    const int32_t most = 32767 - 256 * l->high, least = nn_max(32767 + 256 * l->low, 0);
    for (int32_t n = 0; n < count; n++) {
        const int32_t sum = bias + products + n;
        const int32_t upper = element(shift == 0 ? sum : ((sum >> (shift - 1)) + 1) >> 1);
        int32_t near = element(((upper * high_low + 8192) >> 14) + near0), y;
        int64_t scaled;
        if (is_signed) {
            near = element(near + (upper > 0 ? jumped : upper < 0 ? -jumped : 0));
        }
        if (fine) {
            const int32_t fraction = (int16_t)((uint32_t)sum << (16 - shift));
            near = element(near + ((fraction * low + 8192) >> 14));
        } else if (wide) {
            near += (sum - upper * (1 << shift)) * low;
        }
        scaled = (int64_t)offset + (uint16_t)near + (int64_t)upper * high;
        scaled = scaled > INT32_MAX ? INT32_MAX : scaled < -INT32_MAX ? -INT32_MAX : scaled;
        y = element((int32_t)((scaled + half) >> down));
        if (bounded) {
            y = moved(moved(moved(moved(y, most, 1), most, -1), least, -1), least, 1);
        }
        if (order == NN_VPU_ALONE) {
            y = y < -32640 ? -128 : (y + 128) >> 8;
            out[n] = (int8_t)nn_min(y, 127);
        } else {
            out[n] = (int8_t)(y >> 8);
        }
    }
}

/* By the bits of a mode, and whether outputs have bounds. */
#define QUICKLY(name, order)                                                                       \
    static void name(const layer *l, const place *p, int32_t products, int32_t count,              \
                     int8_t *out) {                                                                \
        const int mode = p->record->mode, bounded = l->low > -128 || l->high < 127;                \
        if (mode & NN_VPU_MODE_FINE) {                                                             \
            quickly(l, p, products, count, out, 1, 1, 1, 1, order);                                \
        } else if (!(mode & NN_VPU_MODE_WIDE)) {                                                   \
            quickly(l, p, products, count, out, 0, 1, 0, 1, order);                                \
        } else if (bounded) {                                                                      \
            quickly(l, p, products, count, out, 1, 1, 0, 1, order);                                \
        } else {                                                                                   \
            quickly(l, p, products, count, out, 1, 1, 0, 0, order);                                \
        }                                                                                          \
    }
QUICKLY(quickly_alone, NN_VPU_ALONE)
QUICKLY(quickly_paired, NN_VPU_EVEN)

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    static int64_t chunks;
    const place p = place_of(l, c);
    const int32_t products = (int32_t)((uint32_t)first - (uint32_t)l->biases[c]);
    int8_t kernels[CHUNK];
    if (p.record->mode & (NN_VPU_MODE_SCALAR | NN_VPU_MODE_ON16)) {
        by_kernels(l, &p, products, count, out);
        return;
    }
    if (p.order == NN_VPU_ALONE) {
        quickly_alone(l, &p, products, count, out);
    } else {
        quickly_paired(l, &p, products, count, out);
    }
    if (chunks++ % SAMPLED == 0) {
        by_kernels(l, &p, products, count, kernels);
        for (int32_t i = 0; i < count; i++) {
            out[i] = (int8_t)(kernels[i] == out[i] ? out[i] : ~out[i]); /* both have to be right */
        }
    }
}
