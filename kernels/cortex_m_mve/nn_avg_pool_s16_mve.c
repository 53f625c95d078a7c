/* AVERAGE_POOL_2D on int16, Helium. */
#include "nn_mve_wide_pool.h"

/* With |sum| <= 2^15 count, half of the count more, and 2^32 / count rounded up by less than 1, the
 * quotient is exact up to this count. */
#define MAX_INVERSE 361

/* sum / count, halves away from zero. Signs are all ones or all zeros: no predicate, which the loop
 * over a window has. */
static inline int32x4_t divide(int32x4_t sums, int32_t count, uint32_t inverse) {
    if (count > MAX_INVERSE) {
        for (int32_t i = 0; i < 4; i++) {
            sums[i] = nn_divide(sums[i], count);
        }
        return sums;
    }
    const int32x4_t sign = vshrq_n_s32(sums, 31);
    const uint32x4_t size = vreinterpretq_u32_s32(vabsq_s32(sums));
    const uint32x4_t mean =
        vmulhq_u32(vaddq_n_u32(size, (uint32_t)count / 2), vdupq_n_u32(inverse));
    return vsubq_s32(veorq_s32(vreinterpretq_s32_u32(mean), sign), sign);
}

/* The sums of eight channels: the even ones, the odd ones. */
typedef struct {
    int32x4_t even, odd;
} wide_sums;

/* Adds the elements of a part of a window, which begin `offset` bytes behind those of the first. */
static inline wide_sums add_part(wide_sums sums, const nn_mve_grid *g, int32_t offset,
                                 mve_pred16_t some) {
    const int8_t *row = g->data + offset;
    for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
        const int8_t *place = row;
        for (int32_t i = g->columns; i > 0; i--, place += g->step) {
            const int16x8_t values = nn_mve_wide_at(place, some);
            sums.even = vaddq_s32(sums.even, vmovlbq_s16(values));
            sums.odd = vaddq_s32(sums.odd, vmovltq_s16(values));
        }
    }
    return sums;
}

static inline int16x8_t divided(wide_sums sums, int32_t count, uint32_t inverse) {
    if (count > 1) {
        sums.even = divide(sums.even, count, inverse);
        sums.odd = divide(sums.odd, count, inverse);
    }
    return vmovntq_s32(vreinterpretq_s16_s32(sums.even), sums.odd);
}

static void compute(nn_mve_pool *pool) {
    const nn_mve_grid first = pool->grids[0];
    const int32_t parts = pool->parts, channels = pool->channels;
    int32_t count = 0;
    for (int32_t i = 0; i < parts; i++) {
        count += pool->grids[i].rows * pool->grids[i].columns;
    }
    const uint32_t inverse = count > 1 ? 0xFFFFFFFFU / (uint32_t)count + 1 : 0;
    for (int32_t i = 0; i < pool->pixels; i++) {
        int16_t *const out = (int16_t *)(void *)(pool->out + i * pool->out_step);
        for (int32_t c = 0; c < channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(channels - c));
            const int32_t offset = i * pool->in_step + 2 * c;
            wide_sums sums = {vdupq_n_s32(0), vdupq_n_s32(0)};
            sums = add_part(sums, &first, offset, some);
            for (int32_t part = 1; part < parts; part++) {
                sums = add_part(sums, pool->grids + part, offset, some);
            }
            nn_mve_put_pool(pool, out + c, divided(sums, count, inverse), some);
        }
    }
}

void nn_avg_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_mve_for_pools(compute, geometry, constants, in, out, window);
}
