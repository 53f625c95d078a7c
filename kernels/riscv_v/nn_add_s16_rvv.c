/* ADD and SUB on int16, with broadcasting, vectors. Constants as nn_add_s16's. */
#include "nn_riscv_v.h"
#include "nn_rvv_wide.h"

/* `count` elements that lie one after the other; `one1`, `one2`: an operand has one channel. */
static inline __attribute__((always_inline)) void add(const void *constants, const int8_t *first,
                                                      const int8_t *second, int8_t *result,
                                                      int32_t count, const int one1,
                                                      const int one2) {
    const nn_add_constants *c = (const nn_add_constants *)constants;
    const int16_t *a = (const int16_t *)(const void *)first;
    const int16_t *b = (const int16_t *)(const void *)second;
    int16_t *out = (int16_t *)(void *)result;
    /* What is negated is the rounded operand: a multiplier below zero would round halves down. */
    const int negated = c->input2_multiplier < 0;
    const int32_t multiplier2 = negated ? -c->input2_multiplier : c->input2_multiplier;
    const size_t up = (size_t)c->left_shift;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, out += vl) {
        vl = __riscv_vsetvl_e32m4((size_t)count);
        const vint32m4_t x = __riscv_vsll(nn_rvv_wide_operand(&a, one1, vl), up, vl);
        const vint32m4_t y = __riscv_vsll(nn_rvv_wide_operand(&b, one2, vl), up, vl);
        const vint32m4_t p = nn_rvv_scale(x, c->input1_multiplier, c->input1_shift, vl);
        const vint32m4_t q = nn_rvv_scale(y, multiplier2, c->input2_shift, vl);
        const vint32m4_t sum = negated ? __riscv_vsub(p, q, vl) : __riscv_vadd(p, q, vl);
        nn_rvv_wide_put(out, nn_rvv_scale(sum, c->output_multiplier, c->output_shift, vl),
                        c->clamp_min, c->clamp_max, vl);
    }
}

static void add_both(const void *c, const int8_t *a, const int8_t *b, int8_t *out, int32_t count) {
    add(c, a, b, out, count, 0, 0);
}

static void add_one_first(const void *c, const int8_t *a, const int8_t *b, int8_t *out,
                          int32_t count) {
    add(c, a, b, out, count, 1, 0);
}

static void add_one_second(const void *c, const int8_t *a, const int8_t *b, int8_t *out,
                           int32_t count) {
    add(c, a, b, out, count, 0, 1);
}

void nn_add_s16_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    nn_run_of_two *const run = in1->channels < out->channels   ? add_one_first
                               : in2->channels < out->channels ? add_one_second
                                                               : add_both;
    nn_for_blocks(2, run, constants, in1, in2, out, window);
}
