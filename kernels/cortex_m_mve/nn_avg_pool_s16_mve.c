/* AVERAGE_POOL_2D on int16, Helium. */
#include "nn_mve_wide_pool.h"

#define MAX_INVERSE 256 /* elements that can be divided by in int32 */

/* The sums of eight channels: the even ones, the odd ones. */
typedef struct {
    int32x4_t even, odd;
} wide_sums;

/* Adds the elements of a part of a window, which begin `offset` bytes behind those of the first.
 * VQDMLAH with 2^15 adds the upper halves: a multiplication, which an addition does not wait for.
 */
static inline wide_sums add_part(wide_sums sums, const nn_mve_grid *g, int32_t offset,
                                 mve_pred16_t some) {
    const int8_t *row = g->data + offset;
    for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
        const int8_t *place = row;
        for (int32_t i = g->columns; i > 0; i--, place += g->step) {
            const int16x8_t values = nn_mve_wide_at(place, some);
            sums.even = vaddq_s32(sums.even, vmovlbq_s16(values));
            sums.odd = vqdmlahq_n_s32(sums.odd, vreinterpretq_s32_s16(values), 1 << 15);
        }
    }
    return sums;
}

/* How sums are divided: as nn_mve_average.h says, with 2^15 count more. With sums of up to 2^16
 * count, and 2^32 / count rounded up by less than 1, the quotient is exact up to MAX_INVERSE. */
typedef struct {
    int32_t count, even, more;
    uint32_t inverse;
} wide_division;

static inline wide_division divide_by(int32_t count) {
    const wide_division d = {count, !(count & 1), count / 2 + 32768 * count,
                             0xFFFFFFFFU / (uint32_t)count + 1};
    return d;
}

/* sum / count + 2^15, halves away from zero. */
static inline int32x4_t divide(int32x4_t sums, const wide_division *d) {
    if (d->count > MAX_INVERSE) {
        for (int32_t i = 0; i < 4; i++) {
            sums[i] = nn_divide(sums[i], d->count) + 32768;
        }
        return sums;
    }
    const int32x4_t lower = vqdmlahq_n_s32(sums, sums, d->even);
    const uint32x4_t positive = vreinterpretq_u32_s32(vaddq_n_s32(lower, d->more));
    return vreinterpretq_s32_u32(vmulhq_u32(positive, vdupq_n_u32(d->inverse)));
}

static inline int16x8_t divided(wide_sums sums, const wide_division *d) {
    if (d->count == 1) {
        return vmovntq_s32(vreinterpretq_s16_s32(sums.even), sums.odd);
    }
    const int32x4_t even = divide(sums.even, d), odd = divide(sums.odd, d);
    const int16x8_t both = vmovntq_s32(vreinterpretq_s16_s32(even), odd);
    return vsubq_n_s16(both, INT16_MIN);
}

static void compute(nn_mve_pool *pool) {
    const nn_mve_limits limits = nn_mve_limits_of(pool->constants);
    const wide_division d = divide_by(pool->count);
    const int32_t channels = pool->channels;
    for (int32_t i = 0; i < pool->pixels; i++) {
        int16_t *const out = (int16_t *)(void *)(pool->out + i * pool->out_step);
        for (int32_t c = 0; c < channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(channels - c));
            wide_sums sums = {vdupq_n_s32(0), vdupq_n_s32(0)};
            for (const nn_mve_grid *g = pool->grids; g < pool->grids + pool->parts; g++) {
                sums = add_part(sums, g, i * pool->in_step + 2 * c, some);
            }
            nn_mve_put_pool(&limits, out + c, divided(sums, &d), some);
        }
    }
}

void nn_avg_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_mve_for_wide_pools(compute, geometry, constants, in, out, window);
}
