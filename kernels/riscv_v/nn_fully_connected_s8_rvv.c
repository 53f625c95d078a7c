/* FULLY_CONNECTED: outputs side by side in vectors, one dense layer a pixel.
 *
 * Constants: nn_rvv_head, then all channels' biases, multipliers, lower parts and shifts, as the
 * scalar kernel has them, then 16-byte aligned the weights: all outputs of an input, then those of
 * the next. */
#include "nn_riscv_v.h"
#include "nn_rvv.h"

#define WORDS 4 /* of a channel's constants */

/* The sums of `vl` outputs; `stride`: weights of an input. */
static inline vint32m8_t dot(vint32m8_t sums, const int8_t *x, const int8_t *weights,
                             int32_t inputs, int32_t stride, size_t vl) {
#pragma GCC unroll 4
    for (const int8_t *end = x + inputs; x != end; x++, weights += stride) {
        const vint16m4_t w = __riscv_vsext_vf2(__riscv_vle8_v_i8m2(weights, vl), vl);
        sums = __riscv_vwmacc(sums, (int16_t)*x, w, vl);
    }
    return sums;
}

/* Outputs [c, c + vl) of sums with their biases; see nn_dense_output. */
NN_OUTLINE void put(const nn_rvv_block *b, int32_t outputs, int32_t c, int8_t *out, vint32m4_t sums,
                    size_t vl) {
    const uint32_t *const multipliers = (const uint32_t *)b->multipliers + c;
    const vuint32m4_t multiplier = __riscv_vle32_v_u32m4(multipliers, vl);
    const vuint32m4_t low = __riscv_vle32_v_u32m4(multipliers + outputs, vl);
    const vuint32m4_t shift = __riscv_vle32_v_u32m4(multipliers + 2 * outputs, vl);
    const vuint32m4_t up = __riscv_vsrl(shift, 8, vl);
    const vuint32m4_t most = __riscv_vsrl(__riscv_vmv_v_x_u32m4(UINT32_MAX, vl), up, vl);
    vuint32m4_t size = __riscv_vreinterpret_u32m4(__riscv_vmax(sums, __riscv_vneg(sums, vl), vl));
    size = __riscv_vsll(__riscv_vminu(size, most, vl), up, vl);
    const vbool8_t carry =
        __riscv_vmadc(__riscv_vmul(size, multiplier, vl), __riscv_vmulhu(size, low, vl), vl);
    vuint32m4_t high = __riscv_vadc(__riscv_vmulhu(size, multiplier, vl), 0, carry, vl);
    high = __riscv_vminu(NN_RVV_HALVES_UP(__riscv_vssrl, high, shift), 255, vl);
    const vint32m4_t scaled = __riscv_vreinterpret_i32m4(high);
    const vbool8_t below = __riscv_vmslt(sums, 0, vl);
    const vint32m4_t signed_ = __riscv_vneg_mu(below, scaled, scaled, vl);
    __riscv_vse8(out + c, nn_rvv_output(signed_, &b->head->common, vl), vl);
}

void nn_fully_connected_s8_rvv(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels;
    const nn_rvv_block b = nn_rvv_open(constants, outputs, WORDS);
    const size_t half = __riscv_vsetvlmax_e32m4();
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            size_t vl;
            for (int32_t c = 0; c < outputs; c += (int32_t)vl) {
                vl = __riscv_vsetvl_e32m8((size_t)(outputs - c));
                vint32m8_t sums = __riscv_vle32_v_i32m8(b.biases + c, vl);
                sums = dot(sums, values, b.weights + c, inputs, outputs, vl);
                put(&b, outputs, c, result, __riscv_vget_i32m4(sums, 0), vl < half ? vl : half);
                if (vl > half) {
                    put(&b, outputs, c + (int32_t)half, result, __riscv_vget_i32m4(sums, 1),
                        vl - half);
                }
            }
        }
    }
}
