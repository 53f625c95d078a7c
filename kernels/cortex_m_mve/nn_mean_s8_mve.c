/* MEAN over any axes, Helium: four outputs at a time where the last kept axis is contiguous. */
#include "nn_mve.h"

/* The sums over the reduced dimensions of four neighbours. */
static inline int32x4_t sum_inner(const nn_reduce_geometry *g, const int8_t *in,
                                  mve_pred16_t some) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    int32x4_t sum = vdupq_n_s32(0);
    if (rank < 0) {
        return vldrbq_z_s32(in, some);
    }
    do {
        const int8_t *line = in + offset;
        const int32_t stride = g->inner_stride[rank];
        for (int32_t i = g->inner[rank]; i > 0; i--, line += stride) {
            sum = vaddq_s32(sum, vldrbq_z_s32(line, some));
        }
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    return sum;
}

/* Four means, clamped. */
static inline int32x4_t finish(int32x4_t sums, const nn_mean_constants *c) {
    const int32_t shift = c->output_shift;
    sums = vshlq_r_s32(vsubq_n_s32(sums, c->sum_zero_point), nn_max(shift, 0));
    sums = vqrdmulhq_n_s32(sums, c->output_multiplier);
    sums = vrshlq_n_s32(vqdmlahq_n_s32(sums, sums, shift < 0), nn_min(shift, 0));
    sums = vaddq_n_s32(sums, c->output_zero_point);
    return vminq_s32(vmaxq_s32(sums, vdupq_n_s32(-128)), vdupq_n_s32(127));
}

void nn_mean_s8_mve(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    const int32_t contiguous = last >= 0 && g->outer_stride[last] == 1;
    const int32_t width = contiguous ? g->outer[last] : 1, rank = contiguous ? last : g->outer_rank;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        for (int32_t i = 0; i < width; i += 4) {
            const mve_pred16_t some = vctp32q((uint32_t)(width - i));
            vstrbq_p_s32(out + i, finish(sum_inner(g, in + offset + i, some), c), some);
        }
        out += width;
    } while (nn_next(rank, g->outer, index, g->outer_stride, &offset));
}
