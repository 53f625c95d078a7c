/* How reductions of float32 walk their elements, in the order of memory. */
#ifndef NN_FLOAT_REDUCE_H
#define NN_FLOAT_REDUCE_H

#include "nn_float.h"

/* The elements so far, and the next one. */
typedef float nn_float_next(float so_far, float x);

static inline float nn_float_sum(float so_far, float x) {
    return so_far + x;
}

static inline float nn_float_greatest(const float *in, int32_t count) {
    float most = -NN_FLOAT_MAX;
    for (int32_t i = 0; i < count; i++) {
        most = most < in[i] ? in[i] : most;
        NN_ONE_BY_ONE();
    }
    return most;
}

/* The reduced dimensions from `in` on. */
static inline __attribute__((always_inline)) float
nn_float_reduce_inner(nn_float_next *compute, const nn_reduce_geometry *g, const float *in,
                      float value) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    if (rank < 0) {
        return compute(value, *in);
    }
    do {
        const float *line = in + offset;
        for (int32_t i = 0; i < g->inner[rank]; i++, line += g->inner_stride[rank]) {
            value = compute(value, *line);
            NN_ONE_BY_ONE();
        }
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    return value;
}

static inline __attribute__((always_inline)) void nn_float_reduce(nn_float_next *compute,
                                                                  float start,
                                                                  const nn_reduce_geometry *g,
                                                                  const int8_t *in, int8_t *out) {
    const float *values = (const float *)(const void *)in;
    float *result = (float *)(void *)out;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        *result++ = nn_float_reduce_inner(compute, g, values + offset, start);
    } while (nn_next(g->outer_rank, g->outer, index, g->outer_stride, &offset));
}

#endif
