/* Poolings on the VPU: how windows of output pixels and groups of channels are walked. */
#ifndef NN_VPU_POOL_H
#define NN_VPU_POOL_H

#include "nn_area.h"
#include "nn_split.h"
#include "nn_view.h"
#include "nn_vpu_lanes.h"
#include "nn_vpu_offsets.h"

#include <stddef.h>

/* A pixel's taps and outputs, as functions in assembly take them: rows of taps in a ring. */
typedef struct {
    const int8_t *x;       /* the first tap */
    int32_t rows, columns; /* behind the first ones */
    int32_t stride, row_step, ring;
    const int8_t *ring_end;
    int8_t *out;
    int32_t groups, back;    /* behind the first one; how far the last one lies over it */
    const nn_vpu_row *start; /* what sums begin with: upper halves and lower ones; or NULL */
} nn_vpu_pool_area;

#ifdef __XS3A__
typedef char nn_vpu_pool_area_layout[offsetof(nn_vpu_pool_area, start) == 4 * AREA_START ? 1 : -1];
#endif

/* The groups of `size` channels from c0 to c1. */
static inline void nn_vpu_open_groups_of_area(nn_vpu_pool_area *a, int32_t c0, int32_t c1,
                                              int32_t size) {
    a->groups = (c1 - c0 + size - 1) / size - 1;
    a->back = (a->groups + 1) * size - (c1 - c0);
    a->start = NULL;
}

/* Returns 0 where there are no taps, or a ring of columns cuts rows of them. */
static inline int nn_vpu_open_area(nn_vpu_pool_area *a, const nn_area *area, const nn_piece *own,
                                   int32_t size, int8_t *out) {
    const nn_view *in = area->in;
    if (area->rows <= 0 || area->columns <= 0 ||
        nn_run(in, area->x, area->columns) < area->columns) {
        return 0;
    }
    a->x = nn_pixel(in, area->y, area->x) + own->c0;
    a->rows = area->rows - 1;
    a->columns = area->columns - 1;
    a->stride = in->pixel_stride;
    a->row_step = in->row_stride;
    a->ring = in->ring_rows * in->row_stride;
    a->ring_end = in->data + a->ring;
    a->out = out + own->c0;
    nn_vpu_open_groups_of_area(a, own->c0, own->c1, size);
    return 1;
}

/* Computes the channels from `first` on of an output pixel, as many as the unit takes at once; of
 * them those of the mask are stored at `out`. */
typedef void nn_vpu_pool_group(nn_vpu *v, void *plan, const nn_area *area, int32_t first,
                               int8_t *out, uint32_t mask);

/* Computes all channels of a piece of an output pixel by a function in assembly; 0 if it cannot. */
typedef int nn_vpu_pool_pixel(void *plan, const nn_area *area, const nn_piece *own, int8_t *out);

/* Calls `compute` for the groups of `size` channels of a piece, where `whole` cannot. The last
 * group of a tensor begins so that it ends with the channels, of which there are `size` at least.
 */
static inline __attribute__((always_inline)) void
nn_vpu_for_groups(nn_vpu_pool_group *compute, nn_vpu_pool_pixel *whole, nn_vpu *v, void *plan,
                  const nn_call *call, const nn_piece *own, int32_t size) {
    const nn_pool_geometry *g = (const nn_pool_geometry *)call->geometry;
    const nn_view *in = call->in, *out = call->out;
    const uint32_t all = (uint32_t)(((uint64_t)1 << size) - 1);
    for (int32_t y = own->window.y0; y < own->window.y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        NN_VPU_SCALAR(20);
        for (int32_t x = own->window.x0; x < own->window.x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const nn_area area = {in, top + rows.first, left + columns.first, rows.end - rows.first,
                                  columns.end - columns.first};
            int8_t *const pixel = nn_out_pixel(out, y, x);
            NN_VPU_SCALAR(25);
            if (whole(plan, &area, own, pixel)) {
                continue;
            }
            for (int32_t c = own->c0; c < own->c1; c += size) {
                const int32_t first = nn_min(c, own->c1 - size);
                compute(v, plan, &area, first, pixel + first, all & (all << (c - first)));
                NN_VPU_SCALAR(8);
            }
        }
    }
}

/* The plain kernel that a pooling falls back to. */
typedef void nn_vpu_plain_pool(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window);

/* Has it compute a piece. */
static inline void nn_vpu_plain_piece(nn_vpu_plain_pool *kernel, const nn_call *call,
                                      const nn_piece *own) {
    const nn_view in = nn_part(call->in, own->c0, own->c1 - own->c0);
    const nn_view out = nn_part(call->out, own->c0, own->c1 - own->c0);
    kernel((const nn_pool_geometry *)call->geometry, call->constants, &in, &out, &own->window);
}

/* Whether the unit computes a pooling of so many channels at once. */
static inline int nn_vpu_can_pool(const void *constants, const nn_view *in, const nn_view *out,
                                  int32_t group, nn_vpu_step step) {
    const nn_pool_constants *c = (const nn_pool_constants *)constants;
    return in->channels >= group && nn_vpu_can_load(in) && nn_vpu_can_load(out) &&
           nn_vpu_can_clamp(c->clamp_min, c->clamp_max, step);
}

/* Has `body` compute a window in pieces; `issues` of an output element, about. */
static inline void nn_vpu_pool(nn_body *body, const nn_pool_geometry *g, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window,
                               int32_t group, int32_t issues) {
    const nn_call call = {.body = body,
                          .geometry = g,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = g->kernel_h,
                          .stride_h = g->stride_h,
                          .pad_top = g->pad_top,
                          .channel_step = group,
                          .issues = out->channels * issues};
    nn_split(&call, window);
}

/* Calls `take` for each pixel of an area, with its channels from `first` on. */
#define NN_VPU_FOR_TAPS(area, first, tap)                                                          \
    for (int32_t row_ = 0; row_ < (area)->rows; row_++)                                            \
        for (int32_t left_ = (area)->columns, x_ = (area)->x, run_; left_ > 0;                     \
             left_ -= run_, x_ += run_, NN_VPU_SCALAR(12))                                         \
            for (const int8_t *tap = nn_pixel((area)->in, (area)->y + row_, x_) + (first),         \
                              *end_ = tap + (run_ = nn_run((area)->in, x_, left_)) *               \
                                                (area)->in->pixel_stride;                          \
                 tap < end_; tap += (area)->in->pixel_stride, NN_VPU_SCALAR(1))

#endif
