/* Instructions of Helium and of RISC-V's vectors, an element at a time, after their manuals. */
#ifndef VECTORS_H
#define VECTORS_H

#include "sums.h"

#include "../../../kernels/include/nn_conv.h"

static inline int32_t saturated(int64_t value, int32_t bits) {
    const int64_t most = ((int64_t)1 << (bits - 1)) - 1;
    return (int32_t)(value > most ? most : value < -most - 1 ? -most - 1 : value);
}

/* VQRDMULH; VSMUL with halves up */
static inline int32_t high_doubled(int32_t a, int32_t b) {
    return saturated(((int64_t)a * b + ((int64_t)1 << 30)) >> 31, 32);
}

/* VQRDMLAH: what is added to is doubled with the product, and all is rounded once. */
static inline int32_t add_high_doubled(int32_t to, int32_t a, int32_t b) {
    return saturated((((int64_t)to << 31) + (int64_t)a * b + ((int64_t)1 << 30)) >> 31, 32);
}

/* VQDMLAH, which does not round */
static inline int32_t add_high_floor(int32_t to, int32_t a, int32_t b) {
    return saturated((((int64_t)to << 31) + (int64_t)a * b) >> 31, 32);
}

/* VRSHL to the right; VSSRA with halves up */
static inline int32_t shifted(int32_t value, int32_t right) {
    return right == 0 ? value : (int32_t)(((int64_t)value + ((int64_t)1 << (right - 1))) >> right);
}

/* To 16 bits, the zero point, bounds: saturating but for the last step. */
static inline int8_t narrowed(const nn_conv_constants *c, int32_t value) {
    const int32_t moved = saturated((int64_t)saturated(value, 16) + c->output_zero_point, 16);
    return (int8_t)nn_clamp(moved, c->clamp_min, c->clamp_max);
}

#endif
