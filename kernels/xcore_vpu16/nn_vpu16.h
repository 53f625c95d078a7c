/* Convolutions on the VPU whose sums become outputs by its multipliers of 16 bits.
 *
 * Constants: nn_conv_constants, then a record for each group of 16 output channels, the last of
 * which may have fewer, then at a multiple of 16 the groups' weights. A record has arrays of `n`
 * elements, the group's channels rounded up to 4:
 *
 *     start_high, start_low   int16  what the accumulators hold before the first product
 *     down, factor, bias      int16  of a group that the unit requantises; or
 *     multiplier, shift, low  int32  of one that scalar code does, as the reference (`low` is a
 *                                    dense layer's)
 *     kind                    int8   the first: `up`, 16 where the unit requantises, 32 where
 *                                    the output has limits of its own
 *
 * which the unit reads 16 at a time: what it reads behind an array of fewer belongs to lanes that
 * have no channel. With all operations on 16 bits, an output is
 *
 *     x = VLSAT(acc, down), VLASHR(x, -up)    y = VLMUL(x, factor)    z = VLADD(y, bias)
 *
 * with z in steps of the output * 2^8, rounded by VDEPTH8. That never makes -128: lanes below
 * -127.5 are found by VDEPTH1 and written apart.
 */
#ifndef NN_VPU16_H
#define NN_VPU16_H

#include "nn_conv.h"
#include "nn_vpu.h"

#define NN_VPU16_UP 15
#define NN_VPU16_ROUNDED 16
#define NN_VPU16_CLAMPED 32
#define NN_VPU16_LANE_BYTES 17 /* of a record, each channel */

/* A group of channels. */
typedef struct {
    const int8_t *record, *weights;
    int32_t lanes, n; /* channels; rounded up to 4 */
    int32_t kind;
} nn_vpu16_group;

/* The group whose first channel is `channel`; its weights are the caller's to find. */
static inline nn_vpu16_group nn_vpu16_open(const void *constants, int32_t channel,
                                           int32_t channels) {
    nn_vpu16_group g;
    g.record =
        (const int8_t *)constants + sizeof(nn_conv_constants) + channel * NN_VPU16_LANE_BYTES;
    g.weights = NULL;
    g.lanes = nn_min(channels - channel, NN_VPU_ACC);
    g.n = (g.lanes + 3) & ~3;
    g.kind = g.record[16 * g.n];
    NN_VPU_SCALAR(6);
    return g;
}

/* Where all groups' weights begin. */
static inline const int8_t *nn_vpu16_weights(const void *constants, int32_t channels) {
    const int32_t bytes =
        (int32_t)sizeof(nn_conv_constants) + ((channels + 3) & ~3) * NN_VPU16_LANE_BYTES;
    return (const int8_t *)constants + ((bytes + 15) & ~15);
}

/* The accumulators as they are before the first product, ready for elements of 8 bits. */
static inline void nn_vpu16_begin(nn_vpu *v, const nn_vpu16_group *g) {
    nn_vpu_vsetc(v, NN_VPU_S8);
    nn_vpu_vldd(v, g->record);
    nn_vpu_vldr(v, g->record + 2 * g->n);
}

#define NN_VPU16_FOUR(x) x, x, x, x
#define NN_VPU16_SIXTEEN(x) NN_VPU16_FOUR(x), NN_VPU16_FOUR(x), NN_VPU16_FOUR(x), NN_VPU16_FOUR(x)

/* The accumulators as outputs of the group's lanes, at a multiple of 4. The unit is left with
 * elements of 16 bits. */
static inline void nn_vpu16_round(nn_vpu *v, const nn_vpu16_group *g, int8_t *out) {
    static const int16_t edge[NN_VPU_ACC] NN_VPU_ALIGNED = {NN_VPU16_SIXTEEN(0x7f80)};
    static const int8_t least[NN_VPU_BYTES] NN_VPU_ALIGNED = {NN_VPU16_SIXTEEN(-128),
                                                              NN_VPU16_SIXTEEN(-128)};
    const uint32_t mask = ((uint32_t)1 << g->lanes) - 1;
    const int32_t up = g->kind & NN_VPU16_UP;
    int16_t kept[NN_VPU_ACC] NN_VPU_ALIGNED;
    uint32_t below[NN_VPU_BYTES / 4] NN_VPU_ALIGNED;
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vlsat(v, g->record + 4 * g->n);
    if (up != 0) {
        nn_vpu_vstr(v, kept);
        nn_vpu_vlashr(v, kept, -up);
    }
    nn_vpu_vlmul(v, g->record + 6 * g->n);
    nn_vpu_vladd(v, g->record + 8 * g->n);
    nn_vpu_vstr(v, kept);
    nn_vpu_vladd(v, edge);
    nn_vpu_vdepth1(v);
    nn_vpu_vstr(v, below);
    nn_vpu_vldr(v, kept);
    nn_vpu_vdepth8(v);
    nn_vpu_vstrpv(v, out, mask & ~below[0]);
    NN_VPU_SCALAR(4); /* the branch for `up`, the load of the mask, its inverse, a branch */
    if ((mask & below[0]) != 0) {
        nn_vpu_vldr(v, least);
        nn_vpu_vstrpv(v, out, mask & below[0]);
    }
}

/* The accumulators as outputs of the group's lanes, as the reference makes them. */
NN_OUTLINE void nn_vpu16_exact(nn_vpu *v, const nn_vpu16_group *g, const nn_conv_constants *common,
                               int dense, int8_t *out) {
    const int32_t *multiplier = (const int32_t *)(const void *)(g->record + 4 * g->n);
    const int32_t *shift = multiplier + g->n, *low = shift + g->n;
    int16_t upper[NN_VPU_ACC] NN_VPU_ALIGNED, lower[NN_VPU_ACC] NN_VPU_ALIGNED;
    nn_vpu_vstd(v, upper);
    nn_vpu_vstr(v, lower);
    NN_VPU_SCALAR(20 * g->lanes);
    for (int32_t i = 0; i < g->lanes; i++) {
        const uint32_t sum = ((uint32_t)(uint16_t)upper[i] << 16) | (uint16_t)lower[i];
        const nn_channel one = {0, multiplier[i], shift[i]};
        const nn_dense_channel both = {0, multiplier[i], shift[i], low[i]};
        out[i] = dense ? nn_dense_output((int32_t)sum, &both, common)
                       : nn_conv_output((int32_t)sum, &one, common);
    }
}

/* The accumulators as the group's outputs. `dense`: exact ones are those of a dense layer. */
static inline void nn_vpu16_output(nn_vpu *v, const nn_vpu16_group *g,
                                   const nn_conv_constants *common, int dense, int8_t *out) {
    int8_t made[NN_VPU_BYTES] NN_VPU_ALIGNED;
    NN_VPU_SCALAR(3); /* the group's kind and the output's alignment */
    if ((g->kind & NN_VPU16_ROUNDED) == 0) {
        nn_vpu16_exact(v, g, common, dense, out);
    } else if (((uintptr_t)out & 3) == 0 && (g->kind & NN_VPU16_CLAMPED) == 0) {
        nn_vpu16_round(v, g, out);
    } else {
        nn_vpu16_round(v, g, made);
        NN_VPU_SCALAR(5 * g->lanes);
        for (int32_t i = 0; i < g->lanes; i++) {
            out[i] = (int8_t)nn_clamp(made[i], common->clamp_min, common->clamp_max);
        }
    }
}

/* ---- sums of products ---------------------------------------------------------------------- */

/* A pixel's taps: chunks of 32 bytes, and what is left at the end of 32 bytes that begin with
 * zeros. Rows of weights are read up to their end, never beyond. */
typedef struct {
    const int8_t *chunks;
    int32_t count;
    int32_t rest; /* bytes, rounded up to 4 */
    int8_t tail[NN_VPU_BYTES] NN_VPU_ALIGNED;
} nn_vpu16_taps;

static inline int nn_vpu16_aligned(const void *data) {
    return ((uintptr_t)data & 3) == 0;
}

static inline void nn_vpu16_copy(nn_vpu *v, int8_t *to, const int8_t *from, int32_t bytes) {
    int32_t i = 0;
    if (nn_vpu16_aligned(to) && nn_vpu16_aligned(from)) {
        for (; i + NN_VPU_BYTES <= bytes; i += NN_VPU_BYTES) {
            nn_vpu_vldr(v, from + i);
            nn_vpu_vstr(v, to + i);
            NN_VPU_SCALAR(1);
        }
        for (; i + 4 <= bytes; i += 4) {
            *(int32_t *)(void *)(to + i) = *(const int32_t *)(const void *)(from + i);
            NN_VPU_SCALAR(3);
        }
    }
    NN_VPU_SCALAR(3 * (bytes - i) + 4);
    for (; i < bytes; i++) {
        to[i] = from[i];
    }
}

/* `bytes` taps that lie one behind the other; `chunks` is read where they fill 32 bytes. */
static inline nn_vpu16_taps nn_vpu16_taps_of(nn_vpu *v, const int8_t *chunks, int32_t bytes) {
    nn_vpu16_taps taps;
    const int32_t rest = bytes % NN_VPU_BYTES;
    taps.chunks = chunks;
    taps.count = bytes / NN_VPU_BYTES;
    taps.rest = (rest + 3) & ~3;
    NN_VPU_SCALAR(5);
    if (rest > 0) {
        nn_vpu_vclrdr(v);
        nn_vpu_vstr(v, taps.tail);
        nn_vpu16_copy(v, taps.tail + NN_VPU_BYTES - taps.rest, chunks + bytes - rest, rest);
    }
    return taps;
}

/* Adds a chunk's products to all accumulators: rows of the lanes from the last to the first, of
 * `bytes` each, and before them nothing for each lane without a channel. Returns the next rows. */
static inline const int8_t *nn_vpu16_chunk(nn_vpu *v, const int8_t *chunk, const int8_t *rows,
                                           int32_t bytes, int32_t lanes) {
    static const int8_t nothing[NN_VPU_BYTES] NN_VPU_ALIGNED = {0};
    nn_vpu_vldc(v, chunk);
    for (int32_t i = lanes; i < NN_VPU_ACC; i++) {
        nn_vpu_vlmaccr(v, nothing);
    }
    for (int32_t i = 0; i < lanes; i++, rows += bytes) {
        nn_vpu_vlmaccr(v, rows + bytes - NN_VPU_BYTES);
    }
    NN_VPU_MAC(NN_VPU_ACC + 1);
    NN_VPU_SCALAR(1);
    return rows;
}

/* All outputs of a pixel from its taps, whose chunks may lie at any address. */
static inline void nn_vpu16_pixel(nn_vpu *v, const void *constants, const nn_vpu16_taps *taps,
                                  int dense, int8_t *out, int32_t channels) {
    const nn_conv_constants *common = (const nn_conv_constants *)constants;
    const int8_t *weights = nn_vpu16_weights(constants, channels);
    const int in_place = nn_vpu16_aligned(taps->chunks);
    int8_t moved[NN_VPU_BYTES] NN_VPU_ALIGNED;
    for (int32_t c = 0; c < channels; c += NN_VPU_ACC) {
        const nn_vpu16_group g = nn_vpu16_open(constants, c, channels);
        const int8_t *chunk = taps->chunks;
        nn_vpu16_begin(v, &g);
        for (int32_t i = 0; i < taps->count; i++, chunk += NN_VPU_BYTES) {
            if (!in_place) {
                NN_VPU_SCALAR(3 * NN_VPU_BYTES);
                for (int32_t k = 0; k < NN_VPU_BYTES; k++) {
                    moved[k] = chunk[k];
                }
            }
            weights = nn_vpu16_chunk(v, in_place ? chunk : moved, weights, NN_VPU_BYTES, g.lanes);
        }
        if (taps->rest > 0) {
            weights = nn_vpu16_chunk(v, taps->tail, weights, taps->rest, g.lanes);
        }
        nn_vpu16_output(v, &g, common, dense, out + c);
    }
}

#endif
