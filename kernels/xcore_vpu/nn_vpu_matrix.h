/* Sums of products with rows of weights, 16 output channels at a time: what convolutions and dense
 * layers are made of.
 *
 * Weights: for each group of 16 channels and 32 inputs 16 rows of 32 bytes, those of the last lane
 * first, zeros behind the last input. Groups 2i and 2i + 1 are the even and the odd of 32 channels;
 * a last group without a partner has its channels side by side.
 */
#ifndef NN_VPU_MATRIX_H
#define NN_VPU_MATRIX_H

#include "nn_vpu_requantise.h"

#define NN_VPU_ROWS (NN_VPU_ACC * NN_VPU_BYTES) /* bytes of weights that 32 inputs meet */

/* The inputs of pixels: `count` runs of `bytes` each, a multiple of 32 if there are several. */
typedef struct {
    int32_t count, bytes;
    int32_t row_step; /* from run to run, in a ring */
    int32_t ring;     /* its bytes, */
    const int8_t *ring_end;
    const int8_t
        *end; /* and the end of what may be read; past a run it does not matter what is there */
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

/* 32 inputs times 16 rows of weights: 17 issues, and a branch. */
static inline void nn_vpu_rows(nn_vpu *v, const int8_t *x, const int8_t *weights) {
    nn_vpu_vldc(v, x);
    for (int32_t i = 0; i < NN_VPU_ACC; i++) {
        nn_vpu_vlmaccr(v, weights + i * NN_VPU_BYTES);
    }
    NN_VPU_MAC(1 + NN_VPU_ACC);
    NN_VPU_SCALAR(1);
}

/* Inputs that the unit cannot load where they are: the first `bytes` of 32. */
NN_OUTLINE void nn_vpu_rows_apart(nn_vpu *v, const int8_t *x, int32_t bytes,
                                  const int8_t *weights) {
    NN_VPU_ALIGNED int8_t copy[NN_VPU_BYTES] = {0};
    memcpy(copy, x, (size_t)bytes);
    NN_VPU_SCALAR(9 + 9 * bytes / 4);
    nn_vpu_rows(v, copy, weights);
}

/* One run; returns the weights behind its own. */
static inline const int8_t *nn_vpu_run(nn_vpu *v, const int8_t *x, int32_t bytes,
                                       const int8_t *weights, const int8_t *end) {
    NN_VPU_SCALAR(3); /* the address's test, and that of a rest */
    if (((uintptr_t)x & 3) == 0) {
        for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
            nn_vpu_rows(v, x, weights);
            x += NN_VPU_BYTES;
            weights += NN_VPU_ROWS;
        }
        if (bytes > 0 && end - x >= NN_VPU_BYTES) {
            nn_vpu_rows(v, x, weights);
            return weights + NN_VPU_ROWS;
        }
    }
    for (; bytes > 0; bytes -= NN_VPU_BYTES) {
        nn_vpu_rows_apart(v, x, nn_min(bytes, NN_VPU_BYTES), weights);
        x += NN_VPU_BYTES;
        weights += NN_VPU_ROWS;
    }
    return weights;
}

/* A group's outputs of the pixel whose first input is at `x`. */
static inline void nn_vpu_pixel(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *group,
                                const nn_vpu_runs *runs, const int8_t *x, int dense, int8_t *to) {
    const int8_t *weights = group->weights;
    nn_vpu_biases(v, group->record);
    weights = nn_vpu_run(v, x, runs->bytes, weights, runs->end);
    for (int32_t i = runs->count - 1; i > 0; i--) {
        x += runs->row_step;
        x = x >= runs->ring_end ? x - runs->ring : x;
        weights = nn_vpu_run(v, x, runs->bytes, weights, runs->end);
        NN_VPU_SCALAR(3);
    }
    nn_vpu_finish(v, b, group, dense, to);
}

static inline int32_t nn_vpu_groups(int32_t channels) {
    return (channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
}

static inline int32_t nn_vpu_group_bytes(int32_t inputs) {
    return (inputs + NN_VPU_BYTES - 1) / NN_VPU_BYTES * NN_VPU_ROWS;
}

/* Group number `index` of those of `channels` output channels. */
static inline nn_vpu_group nn_vpu_member(const nn_vpu_block *b, int32_t channels,
                                         int32_t group_bytes, int32_t index) {
    const int32_t place = index / 2 * NN_VPU_BYTES;
    nn_vpu_group group;
    group.record = b->records + index;
    group.weights = b->weights + index * group_bytes;
    nn_vpu_place(&group,
                 (index & 1)                           ? NN_VPU_ODD
                 : index + 1 < nn_vpu_groups(channels) ? NN_VPU_EVEN
                                                       : NN_VPU_ALONE,
                 place, nn_min(channels - place, NN_VPU_BYTES));
    NN_VPU_SCALAR(16);
    return group;
}

#endif
