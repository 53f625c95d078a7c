/* Poolings with Helium: sums of sixteen channels at a time, and windows of three rows and columns
 * that move on by one column. */
#ifndef NN_MVE_POOL_H
#define NN_MVE_POOL_H

#include "nn_mve.h"

/* Adds `count` elements, `step` bytes apart, of sixteen channels: the first eight, the others. */
static inline void nn_mve_sum_line_16(int16x8_t sums[2], const int8_t *from, int32_t step,
                                      int32_t count) {
    int16x8_t first = sums[0], second = sums[1];
#pragma GCC unroll 4
    for (; count > 0; count--, from += step) {
        first = vaddq_s16(first, vldrbq_s16(from));
        second = vaddq_s16(second, vldrbq_s16(from + 8));
    }
    sums[0] = first;
    sums[1] = second;
}

/* Adds any number of elements, as above: the even ones of the first eight channels, the odd ones,
 * and those of the others. */
static inline void nn_mve_sum_long_16(int32x4_t sums[4], const int8_t *from, int32_t step,
                                      int32_t count) {
    for (int32_t run; count > 0; count -= run, from += run * step) {
        int16x8_t part[2] = {vdupq_n_s16(0), vdupq_n_s16(0)};
        run = nn_min(count, NN_MVE_SHORT_SUM);
        nn_mve_sum_line_16(part, from, step, run);
        sums[0] = vaddq_s32(sums[0], vmovlbq_s16(part[0]));
        sums[1] = vaddq_s32(sums[1], vmovltq_s16(part[0]));
        sums[2] = vaddq_s32(sums[2], vmovlbq_s16(part[1]));
        sums[3] = vaddq_s32(sums[3], vmovltq_s16(part[1]));
    }
}

/* Windows of three rows and columns, each one column further than the one before. */
static inline int nn_mve_slides(const nn_mve_pool *pool) {
    const nn_mve_grid *const g = pool->grids;
    return pool->parts == 1 && g->rows == 3 && g->columns == 3 && pool->in_step == g->step;
}

#endif
