/* FULLY_CONNECTED: outputs side by side in vectors, one dense layer a pixel. */
#include "nn_riscv_v.h"
#include "nn_rvv.h"

#define MOST 64 /* outputs at a time, however long vectors are */

/* The sums of `vl` outputs; `stride`: weights of an input. */
static inline vint32m8_t dot(const int8_t *x, const int8_t *weights, int32_t inputs, int32_t stride,
                             size_t vl) {
    vint32m8_t sums = __riscv_vmv_v_x_i32m8(0, vl);
    for (const int8_t *end = x + inputs; x != end; x++, weights += stride) {
        const vint16m4_t w = __riscv_vsext_vf2(__riscv_vle8_v_i8m2(weights, vl), vl);
        sums = __riscv_vwmacc(sums, (int16_t)*x, w, vl);
    }
    return sums;
}

void nn_fully_connected_s8_rvv(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    const nn_conv_constants common = *(const nn_conv_constants *)constants;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const int8_t *weights = nn_weights(constants, outputs, sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t c = 0; c < outputs;) {
                int32_t sums[MOST];
                const size_t vl = __riscv_vsetvl_e32m8((size_t)nn_min(MOST, outputs - c));
                __riscv_vse32(sums, dot(values, weights + c, inputs, outputs, vl), vl);
                for (int32_t i = 0; i < (int32_t)vl; i++) {
                    result[c + i] = nn_dense_output(sums[i], channels + c + i, &common);
                }
                c += (int32_t)vl;
            }
        }
    }
}
