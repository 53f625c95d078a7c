/* MEAN where neighbours in the input are neighbours in the output; the plain kernel does the rest.
 */
#include "nn_lx106_reduce.h"
#include "nn_xtensa.h"

/* Means of `wide` neighbours: 4 or 1. */
static void block(const nn_reduce_geometry *g, const nn_mean_constants *c, int32_t elements,
                  const int8_t *in, int8_t *out, int32_t wide) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    uint32_t sums[NN_LX106_FOUR] = {0, 0, 0, 0};
    do {
        nn_lx106_take(sums, in + offset, g->inner_stride[rank], g->inner[rank], wide);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    for (int32_t i = 0; i < wide; i++) {
        const int32_t sum = (int32_t)(sums[i] - 128 * (uint32_t)elements);
        const int32_t mean =
            nn_requantise(sum - c->sum_zero_point, c->output_multiplier, c->output_shift);
        out[i] = (int8_t)nn_clamp(mean + c->output_zero_point, -128, 127);
    }
}

void nn_mean_s8_lx106(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                      int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, elements = 1;
    if (last < 0 || g->outer_stride[last] != 1 || g->inner_rank == 0) {
        nn_mean_s8(geometry, constants, in, out);
        return;
    }
    for (int32_t d = 0; d < g->inner_rank; d++) {
        elements *= g->inner[d];
    }
    do {
        int32_t i = 0;
        for (; i + NN_LX106_FOUR <= g->outer[last]; i += NN_LX106_FOUR) {
            block(g, c, elements, in + offset + i, out + i, NN_LX106_FOUR);
        }
        for (; i < g->outer[last]; i++) {
            block(g, c, elements, in + offset + i, out + i, 1);
        }
        out += g->outer[last];
    } while (nn_next(last, g->outer, index, g->outer_stride, &offset));
}
