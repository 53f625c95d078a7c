/* Poolings on int16, Helium: eight channels at a time; what lies outside the tensor does not count.
 */
#ifndef NN_MVE_WIDE_POOL_H
#define NN_MVE_WIDE_POOL_H

#include "nn_mve_wide.h"

/* Eight elements of a pixel; `some`: lanes. */
static inline int16x8_t nn_mve_wide_at(const int8_t *place, mve_pred16_t some) {
    return vldrhq_z_s16((const int16_t *)(const void *)place, some);
}

typedef struct {
    int16x8_t low, high;
} nn_mve_limits;

static inline nn_mve_limits nn_mve_limits_of(const nn_pool_constants *constants) {
    const nn_mve_limits limits = {vdupq_n_s16((int16_t)constants->clamp_min),
                                  vdupq_n_s16((int16_t)constants->clamp_max)};
    return limits;
}

/* Puts out eight channels' results. */
static inline void nn_mve_put_pool(const nn_mve_limits *limits, int16_t *out, int16x8_t found,
                                   mve_pred16_t some) {
    vstrhq_p_s16(out, vminq_s16(vmaxq_s16(found, limits->low), limits->high), some);
}

typedef struct {
    nn_pool_geometry geometry;
    nn_view in, out;
    nn_window window;
} nn_mve_turned_pool;

/* Rows and columns change places. */
static NN_NOINLINE void nn_mve_turn_pool(nn_mve_turned_pool *t, const nn_pool_geometry *g,
                                         const nn_view *in, const nn_view *out,
                                         const nn_window *w) {
    const nn_mve_turned_pool turned = {
        {g->kernel_w, g->kernel_h, g->stride_w, g->stride_h, g->pad_left, g->pad_top},
        {in->data, in->pixel_stride, in->row_stride, in->ring_cols, in->ring_rows, 0, in->width,
         in->height, in->channels},
        {out->data, out->pixel_stride, out->row_stride, out->ring_cols, out->ring_rows, 0,
         out->width, out->height, out->channels},
        {w->x0, w->x1, w->y0, w->y1}};
    *t = turned;
}

/* Has all pixels of a window computed, one after the other: a column of them as a row, which may be
 * one run. */
static inline void nn_mve_for_wide_pools(nn_mve_pool_run *compute, const nn_pool_geometry *g,
                                         const void *constants, const nn_view *in,
                                         const nn_view *out, const nn_window *window) {
    if (nn_one_column(window) && window->y1 - window->y0 > 1 && (in->x0 | out->x0) == 0) {
        nn_mve_turned_pool t;
        nn_mve_turn_pool(&t, g, in, out, window);
        nn_mve_for_pools(compute, &t.geometry, constants, &t.in, &t.out, &t.window);
    } else {
        nn_mve_for_pools(compute, g, constants, in, out, window);
    }
}

#endif
