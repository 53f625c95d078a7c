/* AVERAGE_POOL_2D, Helium: eight channels at a time. What lies outside the tensor does not count.
 */
#include "nn_mve_average.h"
#include "nn_mve_pool.h"

#define MAX_SHORT 185    /* elements that can be divided by in int16; tried with every sum */
#define MAX_INVERSE 4096 /* elements that can be divided by in int32 */

/* ---- windows of two rows and columns ----------------------------------------------------------
 */

/* out = the average of four pixels, clamped. Eight channels a turn: q0 takes the sum, q1 the next
 * pixel, q2 and q3 are the clamp. A negative sum is made smaller by one before VRSHR rounds halves
 * up. VLDRB that widens takes low registers only. */
static inline void average_of_four(const int8_t *a, const int8_t *b, const int8_t *c,
                                   const int8_t *d, int8_t *out, int32_t channels,
                                   const nn_pool_constants *constants) {
    __asm volatile("vdup.16 q2, %[low]\n"
                   "vdup.16 q3, %[high]\n"
                   "wlstp.16 lr, %[channels], 2f\n"
                   "1:\n"
                   "vldrb.s16 q0, [%[a]], #8\n"
                   "vldrb.s16 q1, [%[b]], #8\n"
                   "vadd.i16 q0, q0, q1\n"
                   "vldrb.s16 q1, [%[c]], #8\n"
                   "vadd.i16 q0, q0, q1\n"
                   "vldrb.s16 q1, [%[d]], #8\n"
                   "vadd.i16 q0, q0, q1\n"
                   "vqdmlah.s16 q0, q0, %[one]\n"
                   "vrshr.s16 q0, q0, #2\n"
                   "vmax.s16 q0, q0, q2\n"
                   "vmin.s16 q0, q0, q3\n"
                   "vstrb.16 q0, [%[out]], #8\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [a] "+l"(a), [b] "+l"(b), [c] "+l"(c), [d] "+l"(d), [out] "+l"(out)
                   : [channels] "r"(channels), [low] "r"(constants->clamp_min),
                     [high] "r"(constants->clamp_max), [one] "r"(1)
                   : "q0", "q1", "q2", "q3", "lr", "memory");
}

static NN_NOINLINE void average_squares(const nn_mve_pool *pool) {
    const nn_mve_grid *const g = pool->grids;
    const int8_t *above = g->data, *below = g->data + g->row_step;
    int8_t *out = pool->out;
    for (int32_t i = pool->pixels; i > 0; i--, out += pool->out_step) {
        average_of_four(above, above + g->step, below, below + g->step, out, pool->channels,
                        pool->constants);
        above += pool->in_step;
        below += pool->in_step;
    }
}

/* ---- windows of up to MAX_SHORT elements ------------------------------------------------------
 */

/* Adds up eight channels, `offset` bytes behind the first of the windows. */
static inline int16x8_t sum_short(const nn_mve_pool *pool, int32_t offset, int all,
                                  mve_pred16_t some) {
    int16x8_t sum = vdupq_n_s16(0);
    const nn_mve_grid *g = pool->grids;
    for (int32_t i = pool->parts; i > 0; i--, g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            sum = nn_mve_sum_line(sum, row, g->step, g->columns, all, some);
        }
    }
    return sum;
}

/* Sixteen channels, as above. */
static inline void sum_short_16(const nn_mve_pool *pool, int32_t offset, int16x8_t sums[2]) {
    sums[0] = vdupq_n_s16(0);
    sums[1] = sums[0];
    const nn_mve_grid *g = pool->grids;
    for (int32_t i = pool->parts; i > 0; i--, g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            nn_mve_sum_line_16(sums, row, g->step, g->columns);
        }
    }
}

static NN_NOINLINE void average_short(const nn_mve_pool *pool, int32_t count) {
    const nn_mve_division d = nn_mve_divide_by(count, pool->constants);
    const int32_t left = pool->channels % 8, full = pool->channels - left;
    const mve_pred16_t some = vctp16q((uint32_t)left);
    for (int32_t i = 0; i < pool->pixels; i++) {
        const int32_t offset = i * pool->in_step;
        int8_t *const out = pool->out + i * pool->out_step;
        int32_t c = 0;
        for (; c + 16 <= full; c += 16) {
            int16x8_t sums[2];
            sum_short_16(pool, offset + c, sums);
            vstrbq_s16(out + c, nn_mve_divide(sums[0], &d));
            vstrbq_s16(out + c + 8, nn_mve_divide(sums[1], &d));
        }
        for (; c < full; c += 8) {
            vstrbq_s16(out + c, nn_mve_divide(sum_short(pool, offset + c, 1, 0), &d));
        }
        if (left > 0) {
            const int16x8_t sums = sum_short(pool, offset + full, 0, some);
            vstrbq_p_s16(out + full, nn_mve_divide(sums, &d), some);
        }
    }
}

/* ---- windows of three rows and columns that move on by one column -----------------------------
 *
 * Eight channels of all windows: each column is added up once. */
static inline int16x8_t sum_column(const int8_t *from, int32_t row_step, int all,
                                   mve_pred16_t some) {
    return nn_mve_sum_line(vdupq_n_s16(0), from, row_step, 3, all, some);
}

static inline void slide_block(const nn_mve_pool *pool, int32_t c, const nn_mve_division *by,
                               int all, mve_pred16_t some) {
    const nn_mve_grid g = pool->grids[0];
    const nn_mve_division d = *by;
    const int8_t *from = g.data + c;
    int8_t *out = pool->out + c;
    int16x8_t left = sum_column(from, g.row_step, all, some);
    int16x8_t middle = sum_column(from + g.step, g.row_step, all, some);
    from += 2 * g.step;
    for (int32_t i = pool->pixels; i > 0; i--, from += g.step, out += pool->out_step) {
        const int16x8_t right = sum_column(from, g.row_step, all, some);
        const int16x8_t result = nn_mve_divide(vaddq_s16(vaddq_s16(left, middle), right), &d);
        left = middle;
        middle = right;
        if (all) {
            vstrbq_s16(out, result);
        } else {
            vstrbq_p_s16(out, result, some);
        }
    }
}

static NN_NOINLINE void average_sliding(const nn_mve_pool *pool) {
    const nn_mve_division d = nn_mve_divide_by(9, pool->constants);
    const int32_t left = pool->channels % 8, full = pool->channels - left;
    for (int32_t c = 0; c < full; c += 8) {
        slide_block(pool, c, &d, 1, 0);
    }
    if (left > 0) {
        slide_block(pool, full, &d, 0, vctp16q((uint32_t)left));
    }
}

/* ---- windows of any size ----------------------------------------------------------------------
 */

/* sum / count, halves away from zero. `inverse` is 2^32 / count rounded up: with |sum| <= 128 count
 * the error |sum| * (inverse * count - 2^32) stays below 2^32 up to a count of 5781. */
static inline int32x4_t divide_long(int32x4_t sums, int32_t count, uint32_t inverse) {
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

/* As sum_short: the even channels, the odd ones. */
static inline void sum_long(const nn_mve_pool *pool, int32_t offset, mve_pred16_t some,
                            int32x4_t sums[2]) {
    sums[0] = vdupq_n_s32(0);
    sums[1] = sums[0];
    const nn_mve_grid *g = pool->grids;
    for (int32_t i = pool->parts; i > 0; i--, g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            nn_mve_sum_long(sums, row, g->step, g->columns, some);
        }
    }
}

/* Sixteen channels, as nn_mve_sum_long_16 orders them. */
static inline void sum_long_16(const nn_mve_pool *pool, int32_t offset, int32x4_t sums[4]) {
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = vdupq_n_s32(0);
    }
    const nn_mve_grid *g = pool->grids;
    for (int32_t i = pool->parts; i > 0; i--, g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            nn_mve_sum_long_16(sums, row, g->step, g->columns);
        }
    }
}

static NN_NOINLINE void average_long(const nn_mve_pool *pool, int32_t count) {
    const uint32_t inverse = 0xFFFFFFFFU / (uint32_t)count + 1;
    const int16x8_t low = vdupq_n_s16((int16_t)pool->constants->clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)pool->constants->clamp_max);
    for (int32_t i = 0; i < pool->pixels; i++) {
        int8_t *const out = pool->out + i * pool->out_step;
        int32_t c = 0;
        for (; c + 16 <= pool->channels; c += 16) {
            int32x4_t sums[4];
            sum_long_16(pool, i * pool->in_step + c, sums);
            for (int32_t k = 0; k < 4; k++) {
                sums[k] = divide_long(sums[k], count, inverse);
            }
            vstrbq_s16(out + c, nn_mve_narrow(sums[0], sums[1], 0, low, high));
            vstrbq_s16(out + c + 8, nn_mve_narrow(sums[2], sums[3], 0, low, high));
        }
        for (; c < pool->channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(pool->channels - c));
            int32x4_t sums[2];
            sum_long(pool, i * pool->in_step + c, some, sums);
            sums[0] = divide_long(sums[0], count, inverse);
            sums[1] = divide_long(sums[1], count, inverse);
            vstrbq_p_s16(out + c, nn_mve_narrow(sums[0], sums[1], 0, low, high), some);
        }
    }
}

static void compute(nn_mve_pool *pool) {
    nn_mve_grid *const grids = pool->grids;
    int32_t count = pool->count;
    if (pool->parts == 1 && grids->rows == 2 && grids->columns == 2) {
        average_squares(pool);
        return;
    }
    if (nn_mve_slides(pool)) {
        average_sliding(pool);
        return;
    }
    for (int32_t i = 0; i < pool->parts; i++) {
        nn_mve_grid *const g = &grids[i];
        if (g->row_step == g->columns * g->step) { /* one row follows the other */
            g->columns *= g->rows;
            g->rows = 1;
        }
    }
    if (count == 1) { /* twice itself, by 2 */
        grids->rows = 2;
        grids->row_step = 0;
        count = 2;
    }
    (count <= MAX_SHORT ? average_short : average_long)(pool, count);
}

void nn_avg_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    nn_mve_for_pools(compute, geometry, constants, in, out, window);
}
