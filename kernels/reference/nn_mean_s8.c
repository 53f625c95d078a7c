/* MEAN and SUM over any axes. */
#include "nn_arith.h"

/* The sum over the reduced dimensions, modulo 2^32. */
static int32_t sum_inner(const nn_reduce_geometry *g, const int8_t *in) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, sum = 0;
    if (rank < 0) {
        return *in;
    }
    do {
        const int8_t *line = in + offset;
        for (int32_t i = 0; i < g->inner[rank]; i++, line += g->inner_stride[rank]) {
            sum = nn_wrapping_add(sum, *line);
        }
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    return sum;
}

void nn_mean_s8(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                int8_t *out) {
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        const int32_t sum = nn_wrapping_add(sum_inner(geometry, in + offset), -c->sum_zero_point);
        const int32_t mean = nn_requantise(sum, c->output_multiplier, c->output_shift);
        *out++ = (int8_t)nn_clamp(nn_wrapping_add(mean, c->output_zero_point), -128, 127);
    } while (
        nn_next(geometry->outer_rank, geometry->outer, index, geometry->outer_stride, &offset));
}
