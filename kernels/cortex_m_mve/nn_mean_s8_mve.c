/* MEAN over any axes, Helium: eight outputs at a time where the last kept axis is contiguous. */
#include "nn_mve_pool.h"

/* The sums over the reduced dimensions of eight neighbours: the even ones, the odd ones. */
static inline void sum_inner(const nn_reduce_geometry *g, const int8_t *in, mve_pred16_t some,
                             int32x4_t sums[2]) {
    const int32_t last = g->inner_rank - 1, rank = nn_max(last, 0);
    const int32_t count = last < 0 ? 1 : g->inner[last],
                  step = last < 0 ? 0 : g->inner_stride[last];
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    sums[0] = vdupq_n_s32(0);
    sums[1] = sums[0];
    do {
        nn_mve_sum_long(sums, in + offset, step, count, some);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
}

/* The same of sixteen neighbours, as nn_mve_sum_long_16 orders them. */
static inline void sum_inner_16(const nn_reduce_geometry *g, const int8_t *in, int32x4_t sums[4]) {
    const int32_t last = g->inner_rank - 1, rank = nn_max(last, 0);
    const int32_t count = last < 0 ? 1 : g->inner[last],
                  step = last < 0 ? 0 : g->inner_stride[last];
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = vdupq_n_s32(0);
    }
    do {
        nn_mve_sum_long_16(sums, in + offset, step, count);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
}

/* Four means, without the output's zero point. */
static inline int32x4_t scale(int32x4_t sums, const nn_mean_constants *c) {
    const int32_t shift = c->output_shift;
    sums = vshlq_r_s32(vsubq_n_s32(sums, c->sum_zero_point), nn_max(shift, 0));
    sums = vqrdmulhq_n_s32(sums, c->output_multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(sums, sums, shift < 0), nn_min(shift, 0));
}

void nn_mean_s8_mve(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1;
    const int32_t contiguous = last >= 0 && g->outer_stride[last] == 1;
    const int32_t width = contiguous ? g->outer[last] : 1, rank = contiguous ? last : g->outer_rank;
    const int16x8_t low = vdupq_n_s16(-128), high = vdupq_n_s16(127);
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        int32_t i = 0;
        for (; i + 16 <= width; i += 16) {
            int32x4_t sums[4];
            sum_inner_16(g, in + offset + i, sums);
            for (int32_t k = 0; k < 4; k++) {
                sums[k] = scale(sums[k], c);
            }
            const int32_t zero_point = c->output_zero_point;
            vstrbq_s16(out + i, nn_mve_narrow(sums[0], sums[1], zero_point, low, high));
            vstrbq_s16(out + i + 8, nn_mve_narrow(sums[2], sums[3], zero_point, low, high));
        }
        for (; i < width; i += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(width - i));
            int32x4_t sums[2];
            sum_inner(g, in + offset + i, some, sums);
            const int32x4_t even = scale(sums[0], c), odd = scale(sums[1], c);
            vstrbq_p_s16(out + i, nn_mve_narrow(even, odd, c->output_zero_point, low, high), some);
        }
        out += width;
    } while (nn_next(rank, g->outer, index, g->outer_stride, &offset));
}
