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

#endif
