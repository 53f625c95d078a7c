/* From the VPU's 16 accumulators to 16 outputs of int8, exactly as nn_requantise and
 * nn_dense_output round: 18 issues where the sums that matter fit 16 bits, 29 otherwise; 4 more
 * where outputs may lie below the zero point of a convolution.
 *
 * The sum is split into an upper part and `shift` lower bits. In exact integers of 32 bits,
 *   scaled = offset + upper * high + lower * low
 *            + ((upper * high_low + lower * low_low +- 2^14 * sign) >> 15, halves up)
 *   y      = scaled >> down, halves up, saturated to 16 bits
 * with y / 256 as the output. LiteRT rounds halves away from zero after a first rounding, so its
 * line has a jump at 0: that is what the sign is for. packing.py chooses the constants and proves
 * for each channel that the outputs step at the same sums; where none do, the group is scalar.
 */
#ifndef NN_VPU_REQUANTISE_H
#define NN_VPU_REQUANTISE_H

#include "nn_conv.h"
#include "nn_vpu.h"

/* Of a group of 16 output channels. */
typedef struct {
    int32_t mode, up, unused[2]; /* up: of a group on 16 bits */
    int16_t bias_high[16], bias_low[16];
    union {
        struct {
            int16_t shift[16], power[16]; /* power: -2^shift */
            int16_t high_low[16], low_low[16], sign[16];
            int16_t offset_high[16], offset_low[16];
            int16_t high[16], low[16];
            int16_t down[16];
        } unit;
        struct {
            int16_t down[16], factor[16], offset[16];
        } on16;
        nn_channel conv[16]; /* of a scalar group, by lane; its bias is not in bias_high */
        nn_dense_channel dense[16];
    } as;
} nn_vpu_record;

typedef char nn_vpu_record_size[sizeof(nn_vpu_record) == 400 ? 1 : -1];

/* Bits of a record's mode. */
#define NN_VPU_MODE_WIDE 1   /* some channel has lower bits */
#define NN_VPU_MODE_SIGNED 2 /* some channel has a jump */
#define NN_VPU_MODE_SCALAR 4
#define NN_VPU_MODE_ON16 8 /* not exact, see nn_vpu_scale_on16 */

/* Where a group's outputs lie. */
typedef enum {
    NN_VPU_EVEN, /* at the even places of 32 bytes */
    NN_VPU_ODD,  /* at the odd ones */
    NN_VPU_ALONE /* side by side */
} nn_vpu_order;

/* What all groups of a call share. */
typedef struct {
    nn_conv_constants common;
    const nn_vpu_record *records;
    const int8_t *weights;
    int32_t bounded; /* whether outputs have bounds within int8's: then */
    NN_VPU_ALIGNED int16_t to_most[2][16], from_most[2][16], to_least[2][16], from_least[2][16];
} nn_vpu_block;

static const NN_VPU_ALIGNED int16_t nn_vpu_zeros[16] = {0};
static const NN_VPU_ALIGNED int16_t nn_vpu_ones[16] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                       1, 1, 1, 1, 1, 1, 1, 1};
static const NN_VPU_ALIGNED int16_t nn_vpu_fifteens[16] = {15, 15, 15, 15, 15, 15, 15, 15,
                                                           15, 15, 15, 15, 15, 15, 15, 15};
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
    b.common = *(const nn_conv_constants *)constants;
    b.records = (const nn_vpu_record *)(const void *)((const nn_conv_constants *)constants + 1);
    b.weights = (const int8_t *)(const void *)(b.records + groups);
    b.bounded = b.common.clamp_min > -128 || b.common.clamp_max < 127;
    if (b.bounded) {
        const int32_t most = 32767 - 256 * b.common.clamp_max;
        const int32_t least = nn_max(32767 + 256 * b.common.clamp_min, 0);
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

/* Sets the accumulators to a group's biases, with elements of 8 bits: 3 issues. */
static inline void nn_vpu_biases(nn_vpu *v, const nn_vpu_record *record) {
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vldd(v, record->bias_high);
    nn_vpu_vldr(v, record->bias_low);
}

/* The accumulators of a group that is not scalar become y, with elements of 16 bits. */
static inline void nn_vpu_scale(nn_vpu *v, const nn_vpu_record *record) {
    NN_VPU_ALIGNED int16_t sum_high[16], sum_low[16], upper[16], lower[16], sign[16], fine[16];
    const int wide = (record->mode & NN_VPU_MODE_WIDE) != 0,
              is_signed = (record->mode & NN_VPU_MODE_SIGNED) != 0;
    NN_VPU_SCALAR(3); /* the mode, and two branches */
    if (wide) {
        nn_vpu_vstd(v, sum_high);
        nn_vpu_vstr(v, sum_low);
    }
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vlsat(v, record->as.unit.shift);
    nn_vpu_vstr(v, upper);
    if (is_signed) {
        nn_vpu_vsign(v);
        nn_vpu_vstr(v, sign);
    }
    nn_vpu_vldc(v, upper);
    if (wide) {
        nn_vpu_vldd(v, sum_high);
        nn_vpu_vldr(v, sum_low);
        nn_vpu_vlmacc(v, record->as.unit.power);
        nn_vpu_vlsat(v, nn_vpu_zeros);
        nn_vpu_vstr(v, lower);
    }
    nn_vpu_vclrdr(v);
    nn_vpu_vlmacc(v, record->as.unit.high_low);
    if (is_signed) {
        nn_vpu_vldc(v, sign);
        nn_vpu_vlmacc(v, record->as.unit.sign);
    }
    if (wide) {
        nn_vpu_vldc(v, lower);
        nn_vpu_vlmacc(v, record->as.unit.low_low);
    }
    nn_vpu_vlsat(v, nn_vpu_fifteens);
    nn_vpu_vstr(v, fine);
    nn_vpu_vldd(v, record->as.unit.offset_high);
    nn_vpu_vldr(v, record->as.unit.offset_low);
    if (wide) {
        nn_vpu_vlmacc(v, record->as.unit.low);
    }
    if (wide || is_signed) {
        nn_vpu_vldc(v, upper);
    }
    nn_vpu_vlmacc(v, record->as.unit.high);
    nn_vpu_vldc(v, fine);
    nn_vpu_vlmacc(v, nn_vpu_ones);
    nn_vpu_vlsat(v, record->as.unit.down);
}

/* The same with factors of 16 bits, as nearly as these allow (docs/vpu16.md): 5 issues, 7 where
 * sums have fewer than 15 bits. y = offset + ((acc >> down) << up) * factor >> 14, halves up. */
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
        nn_vpu_vstrpv(v, out, mask & 0xAAAAAAAAU); /* the upper bytes are the outputs */
        return;
    }
    nn_vpu_vstr(v, y);
    if (order == NN_VPU_EVEN) {
        nn_vpu_vlashr(v, y, 8);
        nn_vpu_vstrpv(v, out, mask & 0x55555555U);
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

/* A scalar group: `lanes` sums of channels that lie `step` bytes apart. */
NN_OUTLINE void nn_vpu_scalar_outputs(nn_vpu *v, const nn_vpu_record *record,
                                      const nn_conv_constants *common, int dense, int32_t lanes,
                                      int32_t step, int8_t *out) {
    NN_VPU_ALIGNED int16_t high[16], low[16];
    nn_vpu_vstd(v, high);
    nn_vpu_vstr(v, low);
    for (int32_t i = 0; i < lanes; i++) {
        const int32_t sum = (int32_t)high[i] * 65536 + (uint16_t)low[i];
        out[i * step] = dense ? nn_dense_output(sum, record->as.dense + i, common)
                              : nn_conv_output(sum, record->as.conv + i, common);
    }
    NN_VPU_SCALAR(lanes * (dense ? 26 : 20) + 4);
}

/* A group as all pixels of a call see it. */
typedef struct {
    const nn_vpu_record *record;
    const int8_t *weights;
    nn_vpu_order order;
    int32_t place; /* of its outputs, in a pixel */
    int32_t bytes; /* among which they lie: 32 or less, 16 or less if alone */
    uint32_t mask; /* of these bytes */
} nn_vpu_group;

static inline void nn_vpu_place(nn_vpu_group *group, nn_vpu_order order, int32_t place,
                                int32_t bytes) {
    group->order = order;
    group->place = place;
    group->bytes = bytes;
    group->mask = bytes >= 32 ? 0xFFFFFFFFU : ((uint32_t)1 << bytes) - 1;
}

/* The outputs of a group, whose sums are in the accumulators, at `to`, which need not be aligned.
 */
static inline void nn_vpu_finish(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *group,
                                 int dense, int8_t *to) {
    NN_VPU_ALIGNED int8_t apart[NN_VPU_BYTES];
    const int32_t first = group->order == NN_VPU_ODD, step = group->order == NN_VPU_ALONE ? 1 : 2;
    const int aligned = ((uintptr_t)to & 3) == 0;
    NN_VPU_SCALAR(4); /* two tests, two branches */
    if (group->record->mode & NN_VPU_MODE_SCALAR) {
        const int32_t lanes = (group->bytes - first + step - 1) / step;
        nn_vpu_scalar_outputs(v, group->record, &b->common, dense, lanes, step, to + first);
        return;
    }
    if (group->record->mode & NN_VPU_MODE_ON16) {
        nn_vpu_scale_on16(v, group->record);
    } else {
        nn_vpu_scale(v, group->record);
    }
    if (b->bounded) {
        nn_vpu_bound(v, b);
    }
    nn_vpu_put_outputs(v, group->order, group->mask, aligned ? to : apart);
    if (!aligned) {
        for (int32_t i = first; i < group->bytes; i += step) {
            to[i] = apart[i];
        }
        NN_VPU_SCALAR(3 * ((group->bytes - first + step - 1) / step));
    }
}

#endif
