/* MUL: elements side by side in vectors; operands that repeat one channel are left to the plain
 * kernel. */
#include "nn_pixelwise.h"
#include "nn_rvv.h"

/* `count` elements that lie one after the other. */
static void multiply_run(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t count) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, a += vl, b += vl, out += vl) {
        vl = __riscv_vsetvl_e32m4((size_t)count);
        const vint16m2_t x = __riscv_vsub(nn_rvv_load(a, vl), (int16_t)c->input1_zero_point, vl);
        const vint16m2_t y = __riscv_vsub(nn_rvv_load(b, vl), (int16_t)c->input2_zero_point, vl);
        const vint32m4_t scaled =
            nn_rvv_scale(__riscv_vwmul(x, y, vl), c->output_multiplier, c->output_shift, vl);
        __riscv_vse8(
            out, nn_rvv_narrow(scaled, c->output_zero_point, c->clamp_min, c->clamp_max, vl), vl);
    }
}

void nn_mul_s8_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    if (in1->channels != out->channels || in2->channels != out->channels) {
        nn_mul_s8(constants, in1, in2, out, window);
        return;
    }
    nn_for_runs(multiply_run, constants, in1, in2, out, window);
}
