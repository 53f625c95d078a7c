/* MAX_POOL_2D on int16, Helium. */
#include "nn_mve_wide_pool.h"

/* Up to eight channels of a window, `offset` bytes behind the first window. */
static inline int16x8_t greatest(const nn_mve_pool *pool, int32_t offset, mve_pred16_t some) {
    int16x8_t found = vdupq_n_s16(INT16_MIN);
    for (const nn_mve_grid *g = pool->grids; g < pool->grids + pool->parts; g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            const int8_t *place = row;
            for (int32_t i = g->columns; i > 0; i--, place += g->step) {
                found = vmaxq_s16(found, nn_mve_wide_at(place, some));
            }
        }
    }
    return found;
}

/* Sixteen channels. */
static inline int16x8x2_t greatest_of_16(const nn_mve_pool *pool, int32_t offset) {
    int16x8x2_t found = {{vdupq_n_s16(INT16_MIN), vdupq_n_s16(INT16_MIN)}};
    for (const nn_mve_grid *g = pool->grids; g < pool->grids + pool->parts; g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            const int8_t *place = row;
            for (int32_t i = g->columns; i > 0; i--, place += g->step) {
                const int16_t *const values = (const int16_t *)(const void *)place;
                found.val[0] = vmaxq_s16(found.val[0], vldrhq_s16(values));
                found.val[1] = vmaxq_s16(found.val[1], vldrhq_s16(values + 8));
            }
        }
    }
    return found;
}

static void compute(nn_mve_pool *pool) {
    const nn_mve_limits limits = nn_mve_limits_of(pool->constants);
    for (int32_t i = 0; i < pool->pixels; i++) {
        int16_t *const out = (int16_t *)(void *)(pool->out + i * pool->out_step);
        int32_t c = 0;
        for (; c + 16 <= pool->channels; c += 16) {
            const int16x8x2_t found = greatest_of_16(pool, i * pool->in_step + 2 * c);
            nn_mve_put_pool(&limits, out + c, found.val[0], 0xFFFF);
            nn_mve_put_pool(&limits, out + c + 8, found.val[1], 0xFFFF);
        }
        for (; c < pool->channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(pool->channels - c));
            const int32_t offset = i * pool->in_step + 2 * c;
            nn_mve_put_pool(&limits, out + c, greatest(pool, offset, some), some);
        }
    }
}

void nn_max_pool_s16_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_mve_for_wide_pools(compute, geometry, constants, in, out, window);
}
