/* Operators on two int16 operands: elements side by side in vectors. */
#ifndef NN_RVV_WIDE_H
#define NN_RVV_WIDE_H

#include "nn_pixelwise.h"
#include "nn_rvv.h"

/* The next `vl` elements of an operand, which it moves on by as many; `one`: has one channel. */
static inline vint32m4_t nn_rvv_wide_operand(const int16_t **from, const int one, size_t vl) {
    const int16_t *at = *from;
    if (one) {
        return __riscv_vmv_v_x_i32m4(*at, vl);
    }
    *from += vl;
    return __riscv_vsext_vf2(__riscv_vle16_v_i16m2(at, vl), vl);
}

static inline void nn_rvv_wide_put(int16_t *out, vint32m4_t values, int32_t low, int32_t high,
                                   size_t vl) {
    values = __riscv_vmin(__riscv_vmax(values, low, vl), high, vl);
    __riscv_vse16(out, __riscv_vncvt_x(values, vl), vl);
}

#endif
