/* MEAN where neighbours in the input are neighbours in the output; the plain kernel does the rest.
 */
#include "nn_riscv.h"
#include "nn_riscv_reduce.h"

/* Means of `wide` neighbours. */
static inline __attribute__((always_inline)) void block(const nn_reduce_geometry *g,
                                                        const nn_mean_constants *c,
                                                        const int8_t *in, int8_t *out,
                                                        int32_t wide) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, sums[NN_RISCV_WIDE] = {0};
    do {
        nn_riscv_take(sums, in + offset, g->inner_stride[rank], g->inner[rank], wide, 0, 1);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    for (int32_t i = 0; i < wide; i++) {
        const int32_t mean =
            nn_requantise(sums[i] - c->sum_zero_point, c->output_multiplier, c->output_shift);
        out[i] = (int8_t)nn_clamp(mean + c->output_zero_point, -128, 127);
    }
}

void nn_mean_s8_riscv(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                      int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    if (last < 0 || g->outer_stride[last] != 1 || g->inner_rank == 0) {
        nn_mean_s8(geometry, constants, in, out);
        return;
    }
    do {
        int32_t i = 0;
        for (; i + NN_RISCV_WIDE <= g->outer[last]; i += NN_RISCV_WIDE) {
            block(g, c, in + offset + i, out + i, NN_RISCV_WIDE);
        }
        for (; i < g->outer[last]; i++) {
            block(g, c, in + offset + i, out + i, 1);
        }
        out += g->outer[last];
    } while (nn_next(last, g->outer, index, g->outer_stride, &offset));
}
