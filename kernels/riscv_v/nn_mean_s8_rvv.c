/* MEAN over any axes: outputs side by side in vectors where they are neighbours in the input. */
#include "nn_riscv_v.h"
#include "nn_rvv.h"

static inline vint16m4_t load(const int8_t *from, size_t vl) {
    return __riscv_vsext_vf2(__riscv_vle8_v_i8m2(from, vl), vl);
}

/* The sums over the reduced dimensions of `vl` neighbours. */
static inline vint32m8_t sum_inner(const nn_reduce_geometry *g, const int8_t *in, size_t vl) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    vint32m8_t sums = __riscv_vmv_v_x_i32m8(0, vl);
    if (rank < 0) {
        return __riscv_vwadd_wv(sums, load(in, vl), vl);
    }
    do {
        const int8_t *line = in + offset;
        const int32_t stride = g->inner_stride[rank];
        for (int32_t i = g->inner[rank]; i > 0; i--, line += stride) {
            sums = __riscv_vwadd_wv(sums, load(line, vl), vl);
        }
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    return sums;
}

void nn_mean_s8_rvv(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    const int contiguous = last >= 0 && g->outer_stride[last] == 1;
    const int32_t width = contiguous ? g->outer[last] : 1, rank = contiguous ? last : g->outer_rank;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        size_t vl;
        for (int32_t i = 0; i < width; i += (int32_t)vl) {
            vl = __riscv_vsetvl_e32m8((size_t)(width - i));
            const vint32m8_t sums =
                __riscv_vsub(sum_inner(g, in + offset + i, vl), c->sum_zero_point, vl);
            const vint32m8_t mean = nn_rvv_scale(sums, c->output_multiplier, c->output_shift, vl);
            __riscv_vse8(out + i, nn_rvv_narrow(mean, c->output_zero_point, -128, 127, vl), vl);
        }
        out += width;
    } while (nn_next(rank, g->outer, index, g->outer_stride, &offset));
}
