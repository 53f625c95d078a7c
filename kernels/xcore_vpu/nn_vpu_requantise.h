/* From the VPU's 16 accumulators to 16 outputs of int8, exactly as nn_requantise and
 * nn_dense_output round: 10 issues where the sums that matter fit 16 bits, 13 otherwise; 4 more
 * where outputs may lie below the zero point of a convolution.
 *
 * The sum is split into an upper part and `shift` lower bits. In exact integers of 32 bits,
 *   near   = (upper * high_low >> 14, halves up) + half of the offset +- 2 * sign
 *   scaled = other half of the offset * 2^16 + (near + lower * low mod 2^16) + upper * high
 *   y      = scaled >> down, halves up, saturated to 16 bits
 * with y / 256 as the output. What is taken modulo 2^16 is in the lower half of an accumulator, so
 * lower = sum - upper * 2^shift needs no computing: sum * low and upper * (-low * 2^shift) are
 * added there, of the sum its own lower half. LiteRT rounds halves away from zero after a first
 * rounding, so its line has a jump at 0: that is what the sign is for. packing.py chooses the
 * constants and proves for each channel that the outputs step at the same sums; where none do, the
 * group is scalar.
 */
#ifndef NN_VPU_REQUANTISE_H
#define NN_VPU_REQUANTISE_H

#include <stddef.h>

#include "nn_conv.h"
#include "nn_vpu.h"
#include "nn_vpu_offsets.h"

/* Of a group of 16 output channels. What can be derived is not in it, see nn_vpu_unpacked. */
typedef struct {
    int8_t mode, up; /* up: of a group on 16 bits */
    int8_t unused[6];
    int8_t jumps[8]; /* 16 times lane i + 8's, plus lane i's, less 128: 14 - log2 of a lane's sign;
                        15: no sign */
    int16_t bias_high[16], bias_low[16];
    union {
        struct {
            int16_t high[16], high_low[16];
            int16_t offset_high[16], offset_low[16];
            int8_t shifts[16]; /* 16 * shift + down - 128 */
        } unit;
        struct {
            int16_t down[16], factor[16], offset[16];
        } on16;
        struct {
            int32_t multiplier[16];
            uint16_t low[16]; /* of a dense layer */
            int8_t shift[16];
        } scalar;
    } as;
} nn_vpu_record;

typedef char nn_vpu_record_size[sizeof(nn_vpu_record) == 224 ? 1 : -1];

/* What follows from a record, made once for all pixels of a call. */
typedef struct {
    NN_VPU_ALIGNED int16_t shift[16], down[16];
    NN_VPU_ALIGNED int16_t low[16],
        power[16]; /* of lower bits; power: -low * 2^shift, or 2^(16 - shift) */
    NN_VPU_ALIGNED int16_t sign[16];
} nn_vpu_unpacked;

/* Bits of a record's mode. */
#define NN_VPU_MODE_WIDE 1   /* some channel has lower bits */
#define NN_VPU_MODE_SIGNED 2 /* some channel has a jump */
#define NN_VPU_MODE_SCALAR 4
#define NN_VPU_MODE_ON16 8  /* not exact, see nn_vpu_scale_on16 */
#define NN_VPU_MODE_PAIR 16 /* a group of even or of odd channels */
#define NN_VPU_MODE_FINE 32 /* lower bits are multiplied as a fraction of 16 bits */

/* Where a group's outputs lie. */
typedef enum {
    NN_VPU_ODD,  /* at the odd places of 32 bytes */
    NN_VPU_EVEN, /* at the even ones */
    NN_VPU_ALONE /* side by side */
} nn_vpu_order;

/* What all groups of a call share. */
typedef struct {
    const nn_conv_constants *common;
    const nn_vpu_record *records;
    const int8_t *weights;
    int32_t bounded; /* whether outputs have bounds within int8's: then */
    NN_VPU_ALIGNED int16_t to_most[2][16], from_most[2][16], to_least[2][16], from_least[2][16];
} nn_vpu_block;

static const NN_VPU_ALIGNED int16_t nn_vpu_zeros[32] = {0};
static const NN_VPU_ALIGNED int16_t nn_vpu_ones[16] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                       1, 1, 1, 1, 1, 1, 1, 1};
static const NN_VPU_ALIGNED int16_t nn_vpu_twos[16] = {2, 2, 2, 2, 2, 2, 2, 2,
                                                       2, 2, 2, 2, 2, 2, 2, 2};
/* y above this is an output of -127 at least. */
static const NN_VPU_ALIGNED int16_t nn_vpu_above_least[16] = {
    -32641, -32641, -32641, -32641, -32641, -32641, -32641, -32641,
    -32641, -32641, -32641, -32641, -32641, -32641, -32641, -32641};
static const NN_VPU_ALIGNED uint32_t nn_vpu_leasts[8] = {0x80808080U, 0x80808080U, 0x80808080U,
                                                         0x80808080U, 0x80808080U, 0x80808080U,
                                                         0x80808080U, 0x80808080U};

/* `groups`: of the whole block. */
static inline nn_vpu_block nn_vpu_open(const void *constants, int32_t groups) {
    nn_vpu_block b;
    b.common = (const nn_conv_constants *)constants;
    b.records = (const nn_vpu_record *)(const void *)(b.common + 1);
    b.weights = (const int8_t *)(const void *)(b.records + groups);
    b.bounded = b.common->clamp_min > -128 || b.common->clamp_max < 127;
    if (b.bounded) {
        const int32_t most = 32767 - 256 * b.common->clamp_max;
        const int32_t least = nn_max(32767 + 256 * b.common->clamp_min, 0);
        for (int32_t i = 0; i < 16; i++) {
            b.to_most[0][i] = (int16_t)(most / 2);
            b.to_most[1][i] = (int16_t)(most - most / 2);
            b.from_most[0][i] = (int16_t)(-most / 2);
            b.from_most[1][i] = (int16_t)(most / 2 - most);
            b.to_least[0][i] = (int16_t)(-least / 2);
            b.to_least[1][i] = (int16_t)(least / 2 - least);
            b.from_least[0][i] = (int16_t)(least / 2);
            b.from_least[1][i] = (int16_t)(least - least / 2);
        }
    }
    NN_VPU_SCALAR(b.bounded ? 80 : 10);
    return b;
}

/* Groups that are made ready together; then all pixels of a call are computed for them. */
#define NN_VPU_BATCH 4

/* A group as all pixels of a call see it. */
typedef struct nn_vpu_group nn_vpu_group;
struct nn_vpu_group {
    /* nn_vpu_offsets.h has the places of what is before `own`. */
    const void *factors;   /* the record's, behind its biases */
    const int16_t *bias;   /* upper halves, then lower ones; zeros of a scalar group */
    const int8_t *weights; /* of a convolution and a dense layer: the last lane's, */
    int32_t step;          /* and how far before it the next lane's */
    int32_t kind;          /* NN_VPU_KIND_* */
    uint32_t mask;         /* of its outputs among 32 bytes */
    int32_t store;         /* its nn_vpu_order, 4 more where outputs are bounded */
    const int16_t *bounds; /* the block's, from to_most on */
    void (*scalar)(const nn_vpu_group *group, const int16_t *sums, int8_t *to);
    int32_t place; /* of its outputs, in a pixel */
    const nn_vpu_record *record;
    int32_t bytes; /* among which outputs lie: 32 or less, 16 or less if alone */
    nn_vpu_order order;
    const nn_conv_constants *common;
    int32_t skip;  /* lanes before the first one whose output is stored */
    int32_t dense; /* whether it is of a dense layer */
    nn_vpu_unpacked own;
};

/* Kinds of groups; without any: plain ones. */
#define NN_VPU_KIND_SIGNED 1
#define NN_VPU_KIND_WIDE 2
#define NN_VPU_KIND_FINE 4 /* instead of WIDE */
#define NN_VPU_KIND_ON16 8 /* alone, and added to it how far sums move up */
#define NN_VPU_KIND_SCALAR 64

#ifdef __XS3A__
typedef char nn_vpu_group_layout[offsetof(nn_vpu_group, record) == 4 * VPU_RECORD &&
                                         offsetof(nn_vpu_group, common) == 4 * VPU_COMMON &&
                                         offsetof(nn_vpu_group, own) == 4 * VPU_OWN &&
                                         sizeof(nn_vpu_record) == sizeof(nn_vpu_group) &&
                                         sizeof(nn_vpu_group) == NN_VPU_BYTES * VPU_GROUP_VECTORS &&
                                         offsetof(nn_vpu_record, as) == RECORD_AS &&
                                         offsetof(nn_vpu_record, as.unit.shifts) == RECORD_SHIFTS
                                     ? 1
                                     : -1];
void nn_vpu_ready_xs3(nn_vpu_group *groups, const nn_vpu_record *records, int32_t count,
                      int32_t ahead);
#endif

static const NN_VPU_ALIGNED int16_t nn_vpu_sixteens[16] = {16, 16, 16, 16, 16, 16, 16, 16,
                                                           16, 16, 16, 16, 16, 16, 16, 16};
static const NN_VPU_ALIGNED int16_t nn_vpu_sixteenths[16] = {
    -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16, -16};
static const NN_VPU_ALIGNED int16_t nn_vpu_bytes_up[16] = {128, 128, 128, 128, 128, 128, 128, 128,
                                                           128, 128, 128, 128, 128, 128, 128, 128};
static const NN_VPU_ALIGNED int16_t nn_vpu_below_quarters[16] = {
    16383, 16383, 16383, 16383, 16383, 16383, 16383, 16383,
    16383, 16383, 16383, 16383, 16383, 16383, 16383, 16383};
/* Ones in bytes. */
static const NN_VPU_ALIGNED int16_t nn_vpu_byte_ones[16] = {
    0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101,
    0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101};

/* Halves of 16 bytes, each of them 16 * upper + lower - 128; elements of 16 bits from now on, and
 * vD is 0. */
static inline void nn_vpu_split(nn_vpu *v, const int8_t *bytes, int16_t *upper, int16_t *lower) {
    NN_VPU_ALIGNED int16_t both[16];
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vldd(v, nn_vpu_zeros);
    nn_vpu_vldr(v, nn_vpu_bytes_up);
    nn_vpu_vldc(v, nn_vpu_byte_ones);
    nn_vpu_vlmacc(v, bytes);
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vstr(v, both);
    nn_vpu_vlashr(v, both, 4);
    nn_vpu_vstr(v, upper);
    nn_vpu_vldc(v, upper);
    nn_vpu_vldr(v, both);
    nn_vpu_vlmacc(v, nn_vpu_sixteenths);
    nn_vpu_vstr(v, lower);
}

/* sign = 2^(14 - jump), 0 where jump is 15; 2^14 is one less. */
static inline void nn_vpu_unpack_signs(nn_vpu *v, const nn_vpu_record *record, int16_t *sign) {
    NN_VPU_ALIGNED int8_t twice[16];
    NN_VPU_ALIGNED int16_t upper[16], jump[16];
    memcpy(twice, record->jumps, 8);
    memcpy(twice + 8, record->jumps, 8);
    NN_VPU_SCALAR(6);
    nn_vpu_split(v, twice, upper, jump);
    nn_vpu_vldr(v, upper);
    nn_vpu_vstrpv(v, jump, 0xFFFF0000U); /* the last eight lanes */
    nn_vpu_vldr(v, nn_vpu_below_quarters);
    nn_vpu_vlsat(v, jump);
    nn_vpu_vstr(v, sign);
}

/* low = high >> shift, halves up. vD is 0. */
static inline void nn_vpu_unpack_wide(nn_vpu *v, const nn_vpu_record *record,
                                      nn_vpu_unpacked *own) {
    NN_VPU_ALIGNED int16_t left[16];
    nn_vpu_vldr(v, own->shift);
    nn_vpu_vlsub(v, nn_vpu_sixteens);
    nn_vpu_vstr(v, left);
    nn_vpu_vldr(v, record->as.unit.high);
    nn_vpu_vlsat(v, own->shift);
    nn_vpu_vstr(v, own->low);
    nn_vpu_vldd(v, own->low); /* low * 2^16 >> 16 - shift */
    nn_vpu_vldr(v, nn_vpu_zeros);
    nn_vpu_vlsat(v, left);
    nn_vpu_vlsub(v, nn_vpu_zeros);
    nn_vpu_vstr(v, own->power);
}

/* low = high >> 2, halves up; vD is 0. power = 2^(16 - shift). Shifts are 2 at least; where a
 * channel has one output only, it does not matter. */
static inline void nn_vpu_unpack_fine(nn_vpu *v, const nn_vpu_record *record,
                                      nn_vpu_unpacked *own) {
    nn_vpu_vldr(v, record->as.unit.high);
    nn_vpu_vlsat(v, nn_vpu_twos);
    nn_vpu_vstr(v, own->low);
    nn_vpu_vldd(v, nn_vpu_ones);
    nn_vpu_vldr(v, nn_vpu_zeros);
    nn_vpu_vlsat(v, own->shift);
    nn_vpu_vstr(v, own->power);
}

/* The outputs of a scalar group, from its sums: upper halves, then lower ones. */
static inline void nn_vpu_scalar_outputs(const nn_vpu_group *group, const int16_t *sums,
                                         const int dense, int8_t *to) {
    const nn_vpu_record *record = group->record;
    const int32_t first = group->order == NN_VPU_ODD, step = group->order == NN_VPU_ALONE ? 1 : 2;
    for (int32_t i = group->skip, at = first + i * step; at < group->bytes; i++, at += step) {
        const int32_t sum = (int32_t)sums[i] * 65536 + (uint16_t)sums[16 + i];
        const int32_t bias = (int32_t)record->bias_high[i] * 65536 + (uint16_t)record->bias_low[i];
        const nn_dense_channel channel = {bias, record->as.scalar.multiplier[i],
                                          record->as.scalar.shift[i], record->as.scalar.low[i]};
        const nn_channel conv = {bias, channel.multiplier, channel.shift};
        to[at] = dense ? nn_dense_output(sum, &channel, group->common)
                       : nn_conv_output(sum, &conv, group->common);
        NN_VPU_SCALAR(dense ? 29 : 23);
    }
    NN_VPU_SCALAR(4);
}

NN_OUTLINE void nn_vpu_scalar_of_conv(const nn_vpu_group *group, const int16_t *sums, int8_t *to) {
    nn_vpu_scalar_outputs(group, sums, 0, to);
}

NN_OUTLINE void nn_vpu_scalar_of_dense(const nn_vpu_group *group, const int16_t *sums, int8_t *to) {
    nn_vpu_scalar_outputs(group, sums, 1, to);
}

/* Which of NN_VPU_KIND_* a record is. */
static inline int32_t nn_vpu_kind(const nn_vpu_record *record) {
    const int32_t mode = record->mode, with = mode & NN_VPU_MODE_SIGNED ? NN_VPU_KIND_SIGNED : 0;
    return mode & NN_VPU_MODE_SCALAR ? NN_VPU_KIND_SCALAR
           : mode & NN_VPU_MODE_ON16 ? NN_VPU_KIND_ON16 + record->up
           : mode & NN_VPU_MODE_FINE ? NN_VPU_KIND_FINE + with
           : mode & NN_VPU_MODE_WIDE ? NN_VPU_KIND_WIDE + with
                                     : with;
}

/* Makes a group ready for its pixels: 13 VPU issues, 11 more if sums have lower bits, 18 more with
 * signs; none for a group on 16 bits, or a scalar one. */
static inline void nn_vpu_unpack(nn_vpu *v, const nn_vpu_record *record, nn_vpu_group *group) {
    group->record = record;
    group->factors = &record->as;
    group->bias = record->mode & NN_VPU_MODE_SCALAR ? nn_vpu_zeros : record->bias_high;
    group->kind = nn_vpu_kind(record);
    NN_VPU_SCALAR(20);
    if (group->kind >= NN_VPU_KIND_ON16) {
        return;
    }
    nn_vpu_split(v, record->as.unit.shifts, group->own.shift, group->own.down);
    if (group->kind & NN_VPU_KIND_FINE) {
        nn_vpu_unpack_fine(v, record, &group->own);
    } else if (group->kind & NN_VPU_KIND_WIDE) {
        nn_vpu_unpack_wide(v, record, &group->own);
    }
    if (group->kind & NN_VPU_KIND_SIGNED) {
        nn_vpu_unpack_signs(v, record, group->own.sign);
    }
}

/* Makes groups ready, each with its record. `ahead`: how far their weights move, to those of as
 * many channels as a batch has; 0: they have their places already. */
static inline void nn_vpu_ready(nn_vpu *v, nn_vpu_group *groups, const nn_vpu_record *records,
                                int32_t count, int32_t ahead) {
#ifdef __XS3A__
    (void)v;
    nn_vpu_ready_xs3(groups, records, count, ahead);
#else
    for (int32_t i = 0; i < count; i++) {
        if (ahead != 0) {
            groups[i].weights += ahead;
            groups[i].place += NN_VPU_BATCH * NN_VPU_ACC;
        }
        nn_vpu_unpack(v, records + i, groups + i);
    }
#endif
}

/* What groups of a call have in common, before they have a place. */
static inline void nn_vpu_open_groups(nn_vpu_group *groups, int32_t count, const nn_vpu_block *b) {
    for (int32_t i = 0; i < count; i++) {
        groups[i].bounds = b->to_most[0];
        groups[i].common = b->common;
        groups[i].scalar = nn_vpu_scalar_of_conv;
        groups[i].dense = 0;
        groups[i].bytes = 0;
        NN_VPU_SCALAR(6);
    }
}

/* Sets the accumulators to a group's biases, with elements of 8 bits: 3 issues. */
static inline void nn_vpu_biases(nn_vpu *v, const nn_vpu_group *group) {
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vldd(v, group->bias);
    nn_vpu_vldr(v, group->bias + NN_VPU_ACC);
}

/* The accumulators of a group that is not scalar become y, with elements of 16 bits. */
static inline void nn_vpu_scale(nn_vpu *v, const nn_vpu_group *group) {
    const nn_vpu_record *record = group->record;
    const nn_vpu_unpacked *own = &group->own;
    NN_VPU_ALIGNED int16_t sum_low[16], upper[16], near[16];
    NN_VPU_SCALAR(3); /* two loads and a branch; two more where there are signs or lower bits */
    nn_vpu_vstr(v, sum_low);
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vlsat(v, own->shift);
    nn_vpu_vstr(v, upper);
    nn_vpu_vlmul(v, record->as.unit.high_low);
    nn_vpu_vladd(v, record->as.unit.offset_low);
    if (group->kind & NN_VPU_KIND_SIGNED) {
        nn_vpu_vstr(v, near);
        nn_vpu_vlashr(v, upper, -15); /* saturates where it is not 0 */
        nn_vpu_vlmul(v, own->sign);
        nn_vpu_vladd(v, near);
    }
    if (group->kind & NN_VPU_KIND_FINE) {
        nn_vpu_vstr(v, near);
        nn_vpu_vldc(v, sum_low);
        nn_vpu_vclrdr(v);
        nn_vpu_vlmacc(v, own->power); /* its lower half: the lower bits, and zeros behind them */
        nn_vpu_vlmul(v, own->low);
        nn_vpu_vladd(v, near);
        nn_vpu_vldc(v, upper);
    } else if (group->kind &
               NN_VPU_KIND_WIDE) { /* vD is 0; what gets into the upper halves is replaced */
        nn_vpu_vldc(v, sum_low);
        nn_vpu_vlmacc(v, own->low);
        nn_vpu_vldc(v, upper);
        nn_vpu_vlmacc(v, own->power);
    } else {
        nn_vpu_vldc(v, upper);
    }
    nn_vpu_vldd(v, record->as.unit.offset_high);
    nn_vpu_vlmacc(v, record->as.unit.high);
    nn_vpu_vlsat(v, own->down);
}

/* The same with factors of 16 bits, as nearly as these allow (docs/internals/vpu16.md): 5 issues, 7
 * where sums have fewer than 15 bits. y = offset + ((acc >> down) << up) * factor >> 14, halves up.
 */
static inline void nn_vpu_scale_on16(nn_vpu *v, const nn_vpu_record *record) {
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vlsat(v, record->as.on16.down);
    NN_VPU_SCALAR(2); /* whether sums move up */
    if (record->up != 0) {
        NN_VPU_ALIGNED int16_t x[16];
        nn_vpu_vstr(v, x);
        nn_vpu_vlashr(v, x, -record->up);
    }
    nn_vpu_vlmul(v, record->as.on16.factor);
    nn_vpu_vladd(v, record->as.on16.offset);
}

/* Bounds y by moving it to where it saturates and back, each in two steps. */
static inline void nn_vpu_bound(nn_vpu *v, const nn_vpu_block *b) {
    nn_vpu_vladd(v, b->to_most[0]);
    nn_vpu_vladd(v, b->to_most[1]);
    nn_vpu_vladd(v, b->from_most[0]);
    nn_vpu_vladd(v, b->from_most[1]);
    nn_vpu_vladd(v, b->to_least[0]);
    nn_vpu_vladd(v, b->to_least[1]);
    nn_vpu_vladd(v, b->from_least[0]);
    nn_vpu_vladd(v, b->from_least[1]);
}

/* Stores the bytes of y that `mask` has, in the group's order: 1, 3 or 10 VPU issues. */
static inline void nn_vpu_put_outputs(nn_vpu *v, nn_vpu_order order, uint32_t mask, int8_t *out) {
    NN_VPU_ALIGNED int16_t y[16];
    if (order == NN_VPU_ODD) {
        nn_vpu_vstrpv(v, out, mask); /* the upper bytes are the outputs */
        return;
    }
    nn_vpu_vstr(v, y);
    if (order == NN_VPU_EVEN) {
        nn_vpu_vlashr(v, y, 8);
        nn_vpu_vstrpv(v, out, mask);
        return;
    }
    {
        /* VDEPTH8 gives -127 for -128: so -128 everywhere, then what is above it. */
        NN_VPU_ALIGNED uint32_t above[8];
        nn_vpu_vlsub(v, nn_vpu_above_least);
        nn_vpu_vdepth1(v);
        nn_vpu_vstr(v, above);
        nn_vpu_vldr(v, nn_vpu_leasts);
        nn_vpu_vstrpv(v, out, mask);
        nn_vpu_vldr(v, y);
        nn_vpu_vdepth8(v);
        nn_vpu_vstrpv(v, out, mask & above[0]);
        NN_VPU_SCALAR(2);
    }
}

static inline void nn_vpu_place(nn_vpu_group *group, const nn_vpu_block *b, nn_vpu_order order,
                                int32_t place, int32_t bytes) {
    const uint32_t mask = bytes >= 32 ? 0xFFFFFFFFU : ((uint32_t)1 << bytes) - 1;
    group->order = order;
    group->store = (int32_t)order + (b->bounded ? 4 : 0);
    group->place = place;
    group->skip = 0;
    group->bytes = bytes;
    group->mask = order == NN_VPU_ODD    ? mask & 0xAAAAAAAAU
                  : order == NN_VPU_EVEN ? mask & 0x55555555U
                                         : mask;
}

/* The outputs of a group, whose sums are in the accumulators, at `to`, which need not be aligned.
 */
static inline void nn_vpu_finish(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *group,
                                 int8_t *to) {
    NN_VPU_ALIGNED int8_t apart[NN_VPU_BYTES];
    const int aligned = ((uintptr_t)to & 3) == 0;
    NN_VPU_SCALAR(4); /* two tests, two branches */
    if (group->record->mode & NN_VPU_MODE_SCALAR) {
        NN_VPU_ALIGNED int16_t sums[2 * NN_VPU_ACC];
        nn_vpu_vstd(v, sums);
        nn_vpu_vstr(v, sums + NN_VPU_ACC);
        group->scalar(group, sums, to);
        return;
    }
    if (group->record->mode & NN_VPU_MODE_ON16) {
        nn_vpu_scale_on16(v, group->record);
    } else {
        nn_vpu_scale(v, group);
    }
    if (b->bounded) {
        nn_vpu_bound(v, b);
    }
    nn_vpu_put_outputs(v, group->order, group->mask, aligned ? to : apart);
    if (!aligned) {
        for (int32_t i = 0; i < group->bytes; i++) {
            if (group->mask >> i & 1) {
                to[i] = apart[i];
            }
        }
        NN_VPU_SCALAR(4 * group->bytes);
    }
}

#endif
