/* MUL on int16, with broadcasting, vectors. Constants as nn_mul_s16's. */
#include "nn_riscv_v.h"
#include "nn_rvv_wide.h"

/* `count` elements that lie one after the other; `one`: the second operand has one channel. */
static inline __attribute__((always_inline)) void multiply(const void *constants,
                                                           const int8_t *first,
                                                           const int8_t *second, int8_t *result,
                                                           int32_t count, const int one) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    const int16_t *a = (const int16_t *)(const void *)first;
    const int16_t *b = (const int16_t *)(const void *)second;
    int16_t *out = (int16_t *)(void *)result;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, a += vl, b += one ? 0 : vl, out += vl) {
        vl = __riscv_vsetvl_e32m4((size_t)count);
        const vint16m2_t x = __riscv_vle16_v_i16m2(a, vl);
        const vint32m4_t product =
            one ? __riscv_vwmul(x, *b, vl) : __riscv_vwmul(x, __riscv_vle16_v_i16m2(b, vl), vl);
        nn_rvv_wide_put(out, nn_rvv_scale(product, c->output_multiplier, c->output_shift, vl),
                        c->clamp_min, c->clamp_max, vl);
    }
}

static void multiply_both(const void *c, const int8_t *a, const int8_t *b, int8_t *out,
                          int32_t count) {
    multiply(c, a, b, out, count, 0);
}

static void multiply_one(const void *c, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t count) {
    multiply(c, a, b, out, count, 1);
}

void nn_mul_s16_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    const int turned = in1->channels < out->channels; /* the factors change places */
    const nn_view *const first = turned ? in2 : in1, *const second = turned ? in1 : in2;
    nn_for_blocks(2, second->channels < out->channels ? multiply_one : multiply_both, constants,
                  first, second, out, window);
}
