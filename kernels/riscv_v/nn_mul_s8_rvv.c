/* MUL: elements side by side in vectors; operands that repeat one channel are left to the plain
 * kernel. */
#include "nn_rvv.h"

/* `count` elements that lie one after the other. */
static void multiply_run(const nn_mul_constants *c, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t count) {
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
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, window->x1 - x)));
            multiply_run((const nn_mul_constants *)constants, nn_pixel(in1, y, x),
                         nn_pixel(in2, y, x), nn_pixel(out, y, x), run * out->channels);
        }
    }
}
