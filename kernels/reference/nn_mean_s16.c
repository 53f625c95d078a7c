/* MEAN and SUM over any axes of int16. */
#include "nn_wide.h"

/* The sum over the reduced dimensions, modulo 2^32. */
static int32_t sum_inner(const nn_reduce_geometry *g, const int16_t *in) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, sum = 0;
    if (rank < 0) {
        return *in;
    }
    do {
        const int16_t *line = in + offset;
        for (int32_t i = 0; i < g->inner[rank]; i++, line += g->inner_stride[rank]) {
            sum = nn_wrapping_add(sum, *line);
        }
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    return sum;
}

void nn_mean_s16(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                 int8_t *out) {
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int16_t *values = (const int16_t *)(const void *)in;
    int16_t *result = (int16_t *)(void *)out;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        const int32_t sum = sum_inner(geometry, values + offset);
        const int32_t mean = nn_requantise(sum, c->output_multiplier, c->output_shift);
        *result++ = (int16_t)nn_clamp(mean, NN_WIDE_MIN, NN_WIDE_MAX);
    } while (
        nn_next(geometry->outer_rank, geometry->outer, index, geometry->outer_stride, &offset));
}
