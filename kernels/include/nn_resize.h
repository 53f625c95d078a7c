/* RESIZE_NEAREST_NEIGHBOR, and RESIZE_BILINEAR in fixed point: positions and weights have 10
 * fractional bits. */
#ifndef NN_RESIZE_H
#define NN_RESIZE_H

#include "nn_arith.h"

/* Input steps an output step, in float32 as the reference. */
static inline float nn_resize_real_step(int32_t in_size, int32_t out_size, int32_t align_corners) {
    return align_corners && out_size > 1 ? (float)(in_size - 1) / (float)(out_size - 1)
                                         : (float)in_size / (float)out_size;
}

/* The nearest input index for an output index. */
static inline int32_t nn_resize_nearest(int32_t index, int32_t in_size, int32_t out_size,
                                        const nn_resize_geometry *g) {
    const float scale = nn_resize_real_step(in_size, out_size, g->align_corners);
    const float place = ((float)index + (g->half_pixel_centers ? 0.5f : 0.0f)) * scale;
    int32_t found = (int32_t)place;
    if (g->align_corners && place - (float)found >= 0.5f) {
        found++;
    }
    return nn_min(found, in_size - 1);
}

#define NN_RESIZE_BITS 10
#define NN_RESIZE_ONE (1 << NN_RESIZE_BITS)

/* The two input indices between which an output index falls, and the second one's weight. */
typedef struct {
    int32_t lower, upper, weight;
} nn_resize_place;

/* Input steps an output step. */
static inline int32_t nn_resize_step(int32_t in_size, int32_t out_size, int32_t align_corners) {
    if (align_corners && out_size > 1) {
        in_size--;
        out_size--;
    }
    return (NN_RESIZE_ONE * in_size + out_size / 2) / out_size;
}

static inline nn_resize_place nn_resize_find(int32_t index, int32_t in_size, int32_t step,
                                             int32_t half_pixel_centers) {
    const int32_t at = index * step + (half_pixel_centers ? step / 2 - NN_RESIZE_ONE / 2 : 0);
    nn_resize_place found;
    /* Divisions, not shifts: they round towards zero. */
    found.lower = nn_clamp(at / NN_RESIZE_ONE, 0, in_size - 1);
    found.upper = nn_min((at + NN_RESIZE_ONE - 1) / NN_RESIZE_ONE, in_size - 1);
    found.weight = at - NN_RESIZE_ONE * found.lower;
    return found;
}

#endif
