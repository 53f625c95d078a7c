/* MAX_POOL_2D, Helium: sixteen channels of a window, or four pixels at a time of all channels,
 * where what the pixels so far came to stands in the output, and is one of the next four. What lies
 * outside the tensor does not count. */
#include "nn_mve_pool.h"

/* out = the largest of four pixels, clamped; pixels may be the same, and the output one of them.
 * Sixteen channels a turn: q0 takes the largest, q1 the next pixel's, q2 and q3 are the clamp. */
static inline void largest_of_four(const int8_t *a, const int8_t *b, const int8_t *c,
                                   const int8_t *d, int8_t *out, int32_t channels,
                                   const nn_pool_constants *constants) {
    __asm volatile("vdup.8 q2, %[low]\n"
                   "vdup.8 q3, %[high]\n"
                   "wlstp.8 lr, %[channels], 2f\n"
                   "1:\n"
                   "vldrb.u8 q0, [%[a]], #16\n"
                   "vldrb.u8 q1, [%[b]], #16\n"
                   "vmax.s8 q0, q0, q1\n"
                   "vldrb.u8 q1, [%[c]], #16\n"
                   "vmax.s8 q0, q0, q1\n"
                   "vldrb.u8 q1, [%[d]], #16\n"
                   "vmax.s8 q0, q0, q1\n"
                   "vmax.s8 q0, q0, q2\n"
                   "vmin.s8 q0, q0, q3\n"
                   "vstrb.8 q0, [%[out]], #16\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [out] "+r"(out)
                   : [channels] "r"(channels), [low] "r"(constants->clamp_min),
                     [high] "r"(constants->clamp_max)
                   : "q0", "q1", "q2", "q3", "lr", "memory");
}

/* Windows of two rows and columns. */
static NN_NOINLINE void largest_of_squares(const nn_mve_pool *pool) {
    const nn_mve_grid *const g = pool->grids;
    const int8_t *above = g->data, *below = g->data + g->row_step;
    int8_t *out = pool->out;
    for (int32_t i = pool->pixels; i > 0; i--, out += pool->out_step) {
        largest_of_four(above, above + g->step, below, below + g->step, out, pool->channels,
                        pool->constants);
        above += pool->in_step;
        below += pool->in_step;
    }
}

/* ---- windows of three rows and columns that move on by one column -----------------------------
 *
 * Sixteen channels of all windows: the largest of each column is found once. */
static inline int8x16_t load(const int8_t *from, int all, mve_pred16_t some) {
    return all ? vldrbq_s8(from) : vldrbq_z_s8(from, some);
}

static inline int8x16_t largest_of_column(const int8_t *from, int32_t row_step, int all,
                                          mve_pred16_t some) {
    const int8x16_t above = load(from, all, some), middle = load(from + row_step, all, some);
    return vmaxq_s8(vmaxq_s8(above, middle), load(from + 2 * row_step, all, some));
}

static inline void slide_block(const nn_mve_pool *pool, int32_t c, int all, mve_pred16_t some) {
    const nn_mve_grid g = pool->grids[0];
    const int8x16_t low = vdupq_n_s8((int8_t)pool->constants->clamp_min);
    const int8x16_t high = vdupq_n_s8((int8_t)pool->constants->clamp_max);
    const int8_t *from = g.data + c;
    int8_t *out = pool->out + c;
    int8x16_t left = largest_of_column(from, g.row_step, all, some);
    int8x16_t middle = largest_of_column(from + g.step, g.row_step, all, some);
    from += 2 * g.step;
    for (int32_t i = pool->pixels; i > 0; i--, from += g.step, out += pool->out_step) {
        const int8x16_t right = largest_of_column(from, g.row_step, all, some);
        const int8x16_t largest = vmaxq_s8(vmaxq_s8(left, middle), right);
        const int8x16_t result = vminq_s8(vmaxq_s8(largest, low), high);
        left = middle;
        middle = right;
        if (all) {
            vstrbq_s8(out, result);
        } else {
            vstrbq_p_s8(out, result, some);
        }
    }
}

static NN_NOINLINE void largest_of_sliding(const nn_mve_pool *pool) {
    const int32_t left = pool->channels % 16, full = pool->channels - left;
    for (int32_t c = 0; c < full; c += 16) {
        slide_block(pool, c, 1, 0);
    }
    if (left > 0) {
        slide_block(pool, full, 0, vctp8q((uint32_t)left));
    }
}

/* ---- others -----------------------------------------------------------------------------------
 */

/* Windows of three columns. */
static NN_NOINLINE void largest_of_threes(const nn_mve_pool *pool) {
    const nn_mve_grid *const g = pool->grids;
    const int8_t *first = g->data;
    int8_t *out = pool->out;
    for (int32_t i = pool->pixels; i > 0; i--, out += pool->out_step, first += pool->in_step) {
        const int8_t *row = first, *so_far = first;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step, so_far = out) {
            largest_of_four(so_far, row, row + g->step, row + 2 * g->step, out, pool->channels,
                            pool->constants);
        }
    }
}

/* The largest of some channels of a window, which begin `offset` bytes behind those of the first.
 */
static inline int8x16_t largest_of_window(const nn_mve_pool *pool, int32_t offset, int all,
                                          mve_pred16_t some) {
    int8x16_t largest = vdupq_n_s8((int8_t)pool->constants->clamp_min);
    for (const nn_mve_grid *g = pool->grids; g < pool->grids + pool->parts; g++) {
        const int8_t *row = g->data + offset;
        for (int32_t j = g->rows; j > 0; j--, row += g->row_step) {
            const int8_t *pixel = row;
            for (int32_t i = g->columns; i > 0; i--, pixel += g->step) {
                largest = vmaxq_s8(largest, load(pixel, all, some));
            }
        }
    }
    return vminq_s8(largest, vdupq_n_s8((int8_t)pool->constants->clamp_max));
}

static NN_NOINLINE void largest_of_any(const nn_mve_pool *pool) {
    const int32_t left = pool->channels % 16, full = pool->channels - left;
    const mve_pred16_t some = vctp8q((uint32_t)left);
    int8_t *out = pool->out;
    for (int32_t i = 0; i < pool->pixels; i++, out += pool->out_step) {
        const int32_t offset = i * pool->in_step;
        for (int32_t c = 0; c < full; c += 16) {
            vstrbq_s8(out + c, largest_of_window(pool, offset + c, 1, 0));
        }
        if (left > 0) {
            vstrbq_p_s8(out + full, largest_of_window(pool, offset + full, 0, some), some);
        }
    }
}

static void compute(nn_mve_pool *pool) {
    const nn_mve_grid *const g = pool->grids;
    if (pool->parts == 1 && g->rows == 2 && g->columns == 2) {
        largest_of_squares(pool);
    } else if (nn_mve_slides(pool)) {
        largest_of_sliding(pool);
    } else if (pool->parts == 1 && g->columns == 3 && pool->channels > 16) {
        largest_of_threes(pool);
    } else {
        largest_of_any(pool);
    }
}

void nn_max_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    nn_mve_for_pools(compute, geometry, constants, in, out, window);
}
