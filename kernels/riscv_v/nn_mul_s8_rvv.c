/* MUL: elements side by side in vectors. */
#include "nn_riscv_v.h"
#include "nn_rvv_pairs.h"

NN_OUTLINE void multiply(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t count) {
    const nn_rvv_pair *const pair = (const nn_rvv_pair *)plan;
    const nn_mul_constants c = *(const nn_mul_constants *)pair->constants;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, out += vl) {
        vl = __riscv_vsetvl_e32m8((size_t)count);
        vint16m4_t x = nn_rvv_elements(&a, 0, pair->one1, vl);
        vint16m4_t y = nn_rvv_elements(&b, 0, pair->one2, vl);
        x = __riscv_vsub(x, (int16_t)c.input1_zero_point, vl);
        y = __riscv_vsub(y, (int16_t)c.input2_zero_point, vl);
        const vint32m8_t result =
            nn_rvv_scale(__riscv_vwmul(x, y, vl), c.output_multiplier, c.output_shift, vl);
        __riscv_vse8(out, nn_rvv_narrow(result, c.output_zero_point, c.clamp_min, c.clamp_max, vl),
                     vl);
    }
}

void nn_mul_s8_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    nn_rvv_for_pairs(1, multiply, constants, in1, in2, out, window);
}
