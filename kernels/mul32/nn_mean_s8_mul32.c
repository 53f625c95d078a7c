/* MEAN where neighbours in the input are neighbours in the output; the plain kernel does the rest.
 */
#include "nn_mul32.h"
#include "nn_mul32_reduce.h"

#define MOST_ELEMENTS (1 << 20) /* whose sums the quick rounding takes */

/* What all outputs have in common. */
typedef struct {
    nn_mean_constants constants;
    int32_t elements;
    int is_quick;
    nn_mul32_rounding rounding;
} plan;

/* Means of `wide` neighbours: 4 or 1. */
static void block(const nn_reduce_geometry *g, const plan *p, const int8_t *in, int8_t *out,
                  int32_t wide) {
    const nn_mean_constants *c = &p->constants;
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    uint32_t sums[NN_MUL32_FOUR] = {0, 0, 0, 0};
    do {
        nn_mul32_take(sums, in + offset, g->inner_stride[rank], g->inner[rank], wide);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    for (int32_t i = 0; i < wide; i++) {
        const int32_t sum = (int32_t)(sums[i] - 128 * (uint32_t)p->elements) - c->sum_zero_point;
        const int32_t mean =
            p->is_quick
                ? nn_mul32_round(sum, &p->rounding)
                : nn_requantise(sum, c->output_multiplier, c->output_shift) + c->output_zero_point;
        out[i] = (int8_t)nn_clamp(mean, -128, 127);
    }
}

void nn_mean_s8_mul32(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                      int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    plan p = {*c, 1, 0, {0, 0, 0}};
    if (last < 0 || g->outer_stride[last] != 1 || g->inner_rank == 0) {
        nn_mean_s8(geometry, constants, in, out);
        return;
    }
    for (int32_t d = 0; d < g->inner_rank; d++) {
        p.elements *= g->inner[d];
    }
    p.is_quick =
        p.elements <= MOST_ELEMENTS &&
        nn_mul32_find(&p.rounding, c->output_multiplier, c->output_shift, c->output_zero_point);
    do {
        int32_t i = 0;
        for (; i + NN_MUL32_FOUR <= g->outer[last]; i += NN_MUL32_FOUR) {
            block(g, &p, in + offset + i, out + i, NN_MUL32_FOUR);
        }
        for (; i < g->outer[last]; i++) {
            block(g, &p, in + offset + i, out + i, 1);
        }
        out += g->outer[last];
    } while (nn_next(last, g->outer, index, g->outer_stride, &offset));
}
