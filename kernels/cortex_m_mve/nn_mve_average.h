/* Averages of up to 185 elements, Helium: their sums fit int16. */
#ifndef NN_MVE_AVERAGE_H
#define NN_MVE_AVERAGE_H

#include "nn_mve.h"

/* How sums of up to 185 elements are divided.
 *
 * sum / count with halves away from zero is floor((sum + count / 2) / count), but for an even count
 * and a negative sum, which is made smaller by one first. With 128 count more it is not negative,
 * and the quotient larger by 128. `inverse` is 2^(16 + shift) / count rounded up, of 16 bits. */
typedef struct {
    int16_t even, low, high;
    uint16_t half, inverse;
    int32_t right; /* -shift */
} nn_mve_division;

static inline nn_mve_division nn_mve_divide_by(int32_t count, const nn_pool_constants *constants) {
    const int32_t shift = 31 - __builtin_clz((uint32_t)count - 1);
    const uint32_t inverse = (((uint32_t)1 << (16 + shift)) - 1) / (uint32_t)count + 1;
    const nn_mve_division d = {!(count & 1),
                               (int16_t)(constants->clamp_min + 128),
                               (int16_t)(constants->clamp_max + 128),
                               (uint16_t)(count / 2 + 128 * count),
                               (uint16_t)inverse,
                               -shift};
    return d;
}

static inline int16x8_t nn_mve_divide(int16x8_t sum, const nn_mve_division *d) {
    uint16x8_t mean = vreinterpretq_u16_s16(vqdmlahq_n_s16(sum, sum, d->even));
    mean = vmulhq_u16(vaddq_n_u16(mean, d->half), vdupq_n_u16(d->inverse));
    mean = vshlq_r_u16(mean, d->right);
    const int16x8_t low = vdupq_n_s16(d->low), high = vdupq_n_s16(d->high);
    return vsubq_n_s16(vminq_s16(vmaxq_s16(vreinterpretq_s16_u16(mean), low), high), 128);
}

#endif
