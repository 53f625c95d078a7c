/* Operators on two operands: elements side by side in vectors. */
#ifndef NN_RVV_PAIRS_H
#define NN_RVV_PAIRS_H

#include "nn_pixelwise.h"
#include "nn_rvv_wide.h"

/* The plan of a run: the operator's constants, and whether an operand has one channel while the
 * output has more. */
typedef struct {
    const void *constants;
    int one1, one2;
} nn_rvv_pair;

/* Calls `compute` with such a plan; `bytes`: of an element. */
static inline __attribute__((always_inline)) void
nn_rvv_for_pairs(const int32_t bytes, nn_run_of_two *compute, const void *constants,
                 const nn_view *in1, const nn_view *in2, const nn_view *out,
                 const nn_window *window) {
    const nn_rvv_pair pair = {constants, in1->channels < out->channels,
                              in2->channels < out->channels};
    nn_for_blocks(bytes, compute, &pair, in1, in2, out, window);
}

/* The next `vl` elements of an operand, which it moves on by as many; `one`: it has one channel. */
static inline __attribute__((always_inline)) vint16m4_t nn_rvv_elements(const int8_t **from,
                                                                        const int wide, int one,
                                                                        size_t vl) {
    const int8_t *const at = *from;
    const int16_t *const wide_at = (const int16_t *)(const void *)at;
    if (one) {
        return __riscv_vmv_v_x_i16m4(wide ? *wide_at : *at, vl);
    }
    *from += wide ? 2 * vl : vl;
    return wide ? __riscv_vle16_v_i16m4(wide_at, vl)
                : __riscv_vsext_vf2(__riscv_vle8_v_i8m2(at, vl), vl);
}

/* The sum of two operands without their zero points, rescaled for the output. */
static inline __attribute__((always_inline)) vint32m8_t nn_rvv_add(const nn_add_constants *c,
                                                                   vint16m4_t a, vint16m4_t b,
                                                                   size_t vl) {
    const size_t up = (size_t)c->left_shift;
    vint32m8_t x = __riscv_vsll(__riscv_vsext_vf2(a, vl), up, vl);
    vint32m8_t y = __riscv_vsll(__riscv_vsext_vf2(b, vl), up, vl);
    /* What is negated is the rounded operand: a multiplier below zero would round halves down. */
    const int negated = c->input2_multiplier < 0;
    const int32_t multiplier2 = negated ? -c->input2_multiplier : c->input2_multiplier;
    x = nn_rvv_scale(x, c->input1_multiplier, c->input1_shift, vl);
    y = nn_rvv_scale(y, multiplier2, c->input2_shift, vl);
    x = negated ? __riscv_vsub(x, y, vl) : __riscv_vadd(x, y, vl);
    return nn_rvv_scale(x, c->output_multiplier, c->output_shift, vl);
}

#endif
