/* MUL: elements side by side in vectors. */
#include "nn_pixelwise.h"
#include "nn_riscv_v.h"
#include "nn_rvv.h"

/* `count` elements that lie one after the other; `one1`, `one2`: an operand has one channel. */
static inline __attribute__((always_inline)) void multiply(const void *constants, const int8_t *a,
                                                           const int8_t *b, int8_t *out,
                                                           int32_t count, const int one1,
                                                           const int one2) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, out += vl) {
        vl = __riscv_vsetvl_e32m4((size_t)count);
        const vint16m2_t x =
            __riscv_vsub(nn_rvv_operand(&a, one1, vl), (int16_t)c->input1_zero_point, vl);
        const vint16m2_t y =
            __riscv_vsub(nn_rvv_operand(&b, one2, vl), (int16_t)c->input2_zero_point, vl);
        const vint32m4_t scaled =
            nn_rvv_scale(__riscv_vwmul(x, y, vl), c->output_multiplier, c->output_shift, vl);
        __riscv_vse8(
            out, nn_rvv_narrow(scaled, c->output_zero_point, c->clamp_min, c->clamp_max, vl), vl);
    }
}

static void multiply_both(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                          int32_t count) {
    multiply(constants, a, b, out, count, 0, 0);
}

static void multiply_one_first(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count) {
    multiply(constants, a, b, out, count, 1, 0);
}

static void multiply_one_second(const void *constants, const int8_t *a, const int8_t *b,
                                int8_t *out, int32_t count) {
    multiply(constants, a, b, out, count, 0, 1);
}

void nn_mul_s8_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    nn_run_of_two *const run = in1->channels < out->channels   ? multiply_one_first
                               : in2->channels < out->channels ? multiply_one_second
                                                               : multiply_both;
    nn_for_blocks(1, run, constants, in1, in2, out, window);
}
