/* Sums of products with rows of weights, 16 output channels at a time: what convolutions and dense
 * layers are made of.
 *
 * Weights: a row for each channel, one behind the other, all of its inputs and zeros up to a
 * multiple of 4; rows of zeros fill the last group up. For a rest of inputs the last 32 bytes of a
 * row are read: what is before the rest, at worst the end of the records, is multiplied with zeros.
 * Groups 2i and 2i + 1 are the even and the odd of 32 channels; a last group without a partner has
 * its channels side by side.
 */
#ifndef NN_VPU_MATRIX_H
#define NN_VPU_MATRIX_H

#include "nn_vpu_requantise.h"

/* The inputs of pixels: `count` runs of `bytes` each, a multiple of 32 if there are several. */
typedef struct {
    int32_t count, bytes;
    int32_t row_step; /* from run to run, in a ring */
    int32_t ring;     /* its bytes, */
    const int8_t *ring_end;
    const int8_t
        *end;     /* and the end of what may be read; past a run it does not matter what is there */
    int8_t *rest; /* 32 zeros; what is beyond the last 32 inputs comes to their end */
} nn_vpu_runs;

/* The end of what may be read from row y on: the row's, or that of the next one where it is behind
 * it and `more` says that it is read as well. */
static inline const int8_t *nn_vpu_row_end(const nn_view *view, int32_t y, int more) {
    const int8_t *row = nn_row(view, y);
    if (more && nn_row(view, y + 1) > row) {
        row = nn_row(view, y + 1);
    }
    return row + (view->ring_cols - 1) * view->pixel_stride + view->channels;
}

/* Copies bytes, by the unit where both addresses let it; changes vR. */
static inline void nn_vpu_copy(nn_vpu *v, int8_t *to, const int8_t *from, int32_t bytes) {
    NN_VPU_SCALAR(3);
    if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
        for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
            nn_vpu_vldr(v, from);
            nn_vpu_vstr(v, to);
            from += NN_VPU_BYTES;
            to += NN_VPU_BYTES;
            NN_VPU_SCALAR(1);
        }
        for (; bytes >= 4; bytes -= 4) {
            memcpy(to, from, 4);
            from += 4;
            to += 4;
            NN_VPU_SCALAR(3);
        }
    }
    for (; bytes >= 4; bytes -= 4) {
        const int8_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        from += 4;
        to += 4;
        NN_VPU_SCALAR(9);
    }
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
        NN_VPU_SCALAR(3);
    }
}

/* 32 inputs times 16 rows of weights that lie `step` bytes before one another: 17 issues, and a
 * branch. Steps ride in the bundles. */
static inline void nn_vpu_rows(nn_vpu *v, const int8_t *x, const int8_t *weights, int32_t step) {
    nn_vpu_vldc(v, x);
    for (int32_t i = 0; i < NN_VPU_ACC; i++) {
        nn_vpu_vlmaccr(v, weights - i * step);
    }
    NN_VPU_MAC(1 + NN_VPU_ACC);
    NN_VPU_SCALAR(1);
}

/* 32 inputs that the unit cannot load where they are. */
NN_OUTLINE void nn_vpu_rows_apart(nn_vpu *v, const int8_t *x, const int8_t *weights, int32_t step) {
    NN_VPU_ALIGNED int8_t copy[NN_VPU_BYTES];
    memcpy(copy, x, NN_VPU_BYTES);
    NN_VPU_SCALAR(9 * NN_VPU_BYTES / 4);
    nn_vpu_rows(v, copy, weights, step);
}

/* How far before a rest's weights, a multiple of 4 bytes, the 32 bytes begin that are read of a
 * row. */
static inline int32_t nn_vpu_before_rest(int32_t rest) {
    return NN_VPU_BYTES - (rest + 3) / 4 * 4;
}

/* Brings the rest of a run behind zeros; changes vR. */
static inline void nn_vpu_take_rest(nn_vpu *v, const nn_vpu_runs *runs, const int8_t *x,
                                    int32_t bytes) {
    int8_t *to = runs->rest + nn_vpu_before_rest(bytes);
    NN_VPU_SCALAR(2);
    if (((uintptr_t)x & 3) == 0 && runs->end - x >= NN_VPU_BYTES) {
        nn_vpu_vldr(v, x);
        nn_vpu_vstrpv(v, to, ((uint32_t)1 << bytes) - 1);
        return;
    }
    memcpy(to, x, (size_t)bytes);
    NN_VPU_SCALAR(2 * bytes + 4);
}

/* The whole chunks of a run; returns where the weights of the inputs behind them begin. */
static inline const int8_t *nn_vpu_run(nn_vpu *v, const int8_t *x, int32_t bytes,
                                       const int8_t *weights, int32_t step) {
    NN_VPU_SCALAR(2); /* the address's test */
    if (((uintptr_t)x & 3) == 0) {
        for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
            nn_vpu_rows(v, x, weights, step);
            x += NN_VPU_BYTES;
            weights += NN_VPU_BYTES;
        }
        return weights;
    }
    for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
        nn_vpu_rows_apart(v, x, weights, step);
        x += NN_VPU_BYTES;
        weights += NN_VPU_BYTES;
    }
    return weights;
}

/* A group's outputs of the pixel whose first input is at `x`. */
static inline void nn_vpu_pixel(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *group,
                                const nn_vpu_runs *runs, const int8_t *x, int dense, int8_t *to) {
    const int8_t *weights = group->weights;
    const int32_t rest = runs->bytes % NN_VPU_BYTES; /* of one run */
    NN_VPU_SCALAR(2);
    if (rest > 0) {
        nn_vpu_take_rest(v, runs, x + runs->bytes - rest, rest);
    }
    nn_vpu_biases(v, group);
    weights = nn_vpu_run(v, x, runs->bytes, weights, group->step);
    for (int32_t i = runs->count - 1; i > 0; i--) {
        x += runs->row_step;
        x = x >= runs->ring_end ? x - runs->ring : x;
        weights = nn_vpu_run(v, x, runs->bytes, weights, group->step);
        NN_VPU_SCALAR(3);
    }
    if (rest > 0) {
        nn_vpu_rows(v, runs->rest, weights - nn_vpu_before_rest(rest), group->step);
    }
    nn_vpu_finish(v, b, group, dense, to);
}

static inline int32_t nn_vpu_groups(int32_t channels) {
    return (channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
}

/* Times that a group's lanes are multiplied. */
static inline int32_t nn_vpu_chunks(int32_t inputs) {
    return (inputs + NN_VPU_BYTES - 1) / NN_VPU_BYTES;
}

/* Bytes of a channel's weights. */
static inline int32_t nn_vpu_row_bytes(int32_t inputs) {
    return (inputs + 3) / 4 * 4;
}

/* Group number `index` of those of `channels` output channels, whose rows of weights have
 * `row_bytes` each. */
static inline void nn_vpu_member(nn_vpu *v, const nn_vpu_block *b, int32_t channels,
                                 int32_t row_bytes, int32_t index, nn_vpu_group *group) {
    const int32_t place = index / 2 * NN_VPU_BYTES;
    const nn_vpu_order order = (index & 1)                           ? NN_VPU_ODD
                               : index + 1 < nn_vpu_groups(channels) ? NN_VPU_EVEN
                                                                     : NN_VPU_ALONE;
    const int32_t apart = order == NN_VPU_ALONE ? 1 : 2; /* channels from lane to lane */
    const int32_t last = place + (order == NN_VPU_ODD) + (NN_VPU_ACC - 1) * apart;
    group->record = b->records + index;
    group->weights = b->weights + last * row_bytes;
    group->step = apart * row_bytes;
    nn_vpu_place(group, order, place, nn_min(channels - place, NN_VPU_BYTES));
    nn_vpu_unpack(v, group);
    NN_VPU_SCALAR(16);
}

#endif
