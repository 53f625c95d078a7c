/* SUM, MEAN, REDUCE_PROD, REDUCE_MAX and REDUCE_MIN of float32 over any axes, in the order of
 * memory. */
#include "nn_float.h"

/* The elements so far, and the next one. */
typedef float next_of(float so_far, float x);

static inline float sum(float so_far, float x) {
    return so_far + x;
}

static inline float product(float so_far, float x) {
    return so_far * x;
}

static inline float larger(float so_far, float x) {
    return x > so_far ? x : so_far;
}

static inline float smaller(float so_far, float x) {
    return x < so_far ? x : so_far;
}

/* The reduced dimensions from `in` on. */
static inline __attribute__((always_inline)) float
reduce_inner(next_of *compute, const nn_reduce_geometry *g, const float *in, float value) {
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

static inline __attribute__((always_inline)) void
reduce(next_of *compute, float start, const nn_reduce_geometry *g, const int8_t *in, int8_t *out) {
    const float *values = (const float *)(const void *)in;
    float *result = (float *)(void *)out;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        *result++ = reduce_inner(compute, g, values + offset, start);
    } while (nn_next(g->outer_rank, g->outer, index, g->outer_stride, &offset));
}

#define FLOAT_REDUCTION(kernel, function, start)                                                   \
    void kernel(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {               \
        reduce(function, start, geometry, in, out);                                                \
    }

FLOAT_REDUCTION(nn_sum_f32, sum, 0.0F)
FLOAT_REDUCTION(nn_reduce_prod_f32, product, 1.0F)
FLOAT_REDUCTION(nn_reduce_max_f32, larger, -NN_FLOAT_MAX)
FLOAT_REDUCTION(nn_reduce_min_f32, smaller, NN_FLOAT_MAX)

void nn_mean_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    int32_t count = 1, results = 1;
    float *result = (float *)(void *)out;
    for (int32_t d = 0; d < geometry->inner_rank; d++) {
        count *= geometry->inner[d];
    }
    for (int32_t d = 0; d < geometry->outer_rank; d++) {
        results *= geometry->outer[d];
    }
    reduce(sum, 0.0F, geometry, in, out);
    for (int32_t i = 0; i < results; i++) {
        result[i] /= (float)count;
        NN_ONE_BY_ONE();
    }
}
