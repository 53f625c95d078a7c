/* AVERAGE_POOL_2D on int16, Helium. */
#include "nn_mve_wide_pool.h"

/* With |sum| <= 2^15 count, half of the count more, and 2^32 / count rounded up by less than 1, the
 * quotient is exact up to this count. */
#define MAX_INVERSE 361

/* sum / count, halves away from zero. */
static inline int32x4_t divide(int32x4_t sums, int32_t count, uint32_t inverse) {
    if (count > MAX_INVERSE) {
        for (int32_t i = 0; i < 4; i++) {
            sums[i] = nn_divide(sums[i], count);
        }
        return sums;
    }
    const uint32x4_t size =
        vaddq_n_u32(vreinterpretq_u32_s32(vabsq_s32(sums)), (uint32_t)count / 2);
    const int32x4_t mean = vreinterpretq_s32_u32(vmulhq_u32(size, vdupq_n_u32(inverse)));
    return vnegq_m_s32(mean, mean, vcmpltq_n_s32(sums, 0));
}

/* Eight channels of a window of `count` elements, `offset` bytes behind the first window. */
static inline int16x8_t average(const nn_mve_pool *pool, int32_t offset, mve_pred16_t some,
                                int32_t count, uint32_t inverse) {
    int32x4_t even = vdupq_n_s32(0), odd = even;
    for (const nn_mve_grid *g = pool->grids; g < pool->grids + pool->parts; g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            const int8_t *place = row;
            for (int32_t i = g->columns; i > 0; i--, place += g->step) {
                const int16x8_t values = nn_mve_wide_at(place, some);
                even = vaddq_s32(even, vmovlbq_s16(values));
                odd = vaddq_s32(odd, vmovltq_s16(values));
            }
        }
    }
    if (count > 1) {
        even = divide(even, count, inverse);
        odd = divide(odd, count, inverse);
    }
    return vmovntq_s32(vreinterpretq_s16_s32(even), odd);
}

static void compute(nn_mve_pool *pool) {
    int32_t count = 0;
    for (int32_t i = 0; i < pool->parts; i++) {
        count += pool->grids[i].rows * pool->grids[i].columns;
    }
    const uint32_t inverse = count > 1 ? 0xFFFFFFFFU / (uint32_t)count + 1 : 0;
    for (int32_t i = 0; i < pool->pixels; i++) {
        int16_t *const out = (int16_t *)(void *)(pool->out + i * pool->out_step);
        for (int32_t c = 0; c < pool->channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(pool->channels - c));
            const int32_t offset = i * pool->in_step + 2 * c;
            nn_mve_put_pool(pool, out + c, average(pool, offset, some, count, inverse), some);
        }
    }
}

void nn_avg_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_mve_for_pools(compute, geometry, constants, in, out, window);
}
