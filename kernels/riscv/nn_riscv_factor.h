/* Element-wise operators: products rounded as nn_requantise rounds them, one factor for all. */
#ifndef NN_RISCV_FACTOR_H
#define NN_RISCV_FACTOR_H

#include "nn_riscv_scalar.h"

/* As nn_riscv_channel, without a bias. */
typedef struct {
    uint32_t multiplier;
    int32_t exponent, offset;
} nn_riscv_factor;

/* Sets `f` up; 0 if `multiplier` and `shift` are none that it can stand for. What is multiplied is
 * below 2^30. */
static inline int nn_riscv_find(nn_riscv_factor *f, int32_t multiplier, int32_t shift,
                                int32_t zero_point) {
    if (multiplier < 0 || shift > -1 || shift < -22) {
        return 0;
    }
    f->multiplier = 2 * (uint32_t)multiplier;
    f->exponent = -shift;
    f->offset = (1 << (-shift - 1)) + zero_point * (1 << -shift);
    return 1;
}

static inline int32_t nn_riscv_scale(int32_t value, const nn_riscv_factor *f) {
    const uint64_t product = (uint64_t)((int64_t)value * f->multiplier);
    const int32_t q = (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31));
    return (q + (q >> 31) + f->offset) >> f->exponent;
}

#endif
