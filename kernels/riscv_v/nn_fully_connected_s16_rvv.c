/* FULLY_CONNECTED on int16: outputs side by side in vectors, one dense layer a pixel.
 *
 * Constants: nn_rvv_head, then the first five words of all channels' nn_wide_dense_channel, each
 * word of all channels, then 16-byte aligned the weights: all outputs of an input, then those of
 * the next. */
#include "nn_riscv_v.h"
#include "nn_rvv_wide.h"

#define WORDS 5 /* of a channel's constants */

/* Those of some channels. */
typedef struct {
    const int32_t *bias_low, *bias_high, *factor_low, *factor_high, *shift;
} words;

static inline words words_of(const nn_rvv_block *b, int32_t outputs, int32_t c) {
    const int32_t *const first = b->biases + c;
    const words k = {first, first + outputs, first + 2 * outputs, first + 3 * outputs,
                     first + 4 * outputs};
    return k;
}

/* Sums with their biases as outputs. */
NN_OUTLINE void put_each(const words *k, const nn_conv_constants *limits, int16_t *out,
                         vint32m4_t low, vint32m4_t high, size_t vl) {
    const nn_wide_constants common = {limits->clamp_min, limits->clamp_max, 64, 0};
    for (size_t i = 0; i < vl; i++) {
        const nn_wide_dense_channel channel = {0,           0, k->factor_low[i], k->factor_high[i],
                                               k->shift[i], 0};
        const int64_t sum = nn_wide_bias(nn_rvv_element(low, i), nn_rvv_element(high, i));
        out[i] = nn_wide_dense_output(sum, &channel, &common);
    }
}

static inline vuint32m4_t load(const int32_t *from, size_t vl) {
    return __riscv_vle32_v_u32m4((const uint32_t *)from, vl);
}

/* The same of all at once, where the factor's 32 upper bits are enough because what is missing of a
 * product carries nothing into its upper word (see nn_wide_dense_output); where they are not for
 * one of the outputs, each by itself. */
NN_OUTLINE void put(const words *k, const nn_conv_constants *limits, int16_t *out, vint32m4_t low,
                    vint32m4_t high, size_t vl) {
    const vbool8_t below = __riscv_vmslt(high, 0, vl);
    vbool8_t beyond = __riscv_vmsne(high, __riscv_vsra(low, 31, vl), vl);
    const vint32m4_t positive = __riscv_vmax(low, __riscv_vneg(low, vl), vl);
    beyond = __riscv_vmor(beyond, __riscv_vmslt(positive, 0, vl), vl);
    const vuint32m4_t size = __riscv_vreinterpret_u32m4(positive);
    const vuint32m4_t factor = __riscv_vor(__riscv_vsll(load(k->factor_high, vl), 11, vl),
                                           __riscv_vsrl(load(k->factor_low, vl), 21, vl), vl);
    const vuint32m4_t shift = __riscv_vsub(load(k->shift, vl), 53, vl);
    beyond = __riscv_vmor(beyond, __riscv_vmsgtu(__riscv_vsub(shift, 1, vl), 30, vl), vl);
    const vbool8_t carry =
        __riscv_vmadc(__riscv_vmul(size, factor, vl), __riscv_vadd(size, 1024, vl), vl);
    beyond = __riscv_vmor(beyond, carry, vl);
    vuint32m4_t product = __riscv_vmulhu(size, factor, vl);
    product = NN_RVV_HALVES_UP(__riscv_vssrl, product, shift);
    if (__riscv_vfirst(beyond, vl) >= 0) {
        put_each(k, limits, out, low, high, vl);
        return;
    }
    vint32m4_t scaled = __riscv_vreinterpret_i32m4(__riscv_vminu(product, 65535, vl));
    scaled = __riscv_vneg_mu(below, scaled, scaled, vl);
    nn_rvv_wide_put(out, __riscv_vlmul_ext_v_i32m4_i32m8(scaled), limits->clamp_min,
                    limits->clamp_max, vl);
}

/* Outputs [c, c + vl) of a pixel. */
static inline void compute(const nn_rvv_block *b, const int16_t *x, int32_t inputs, int16_t *out,
                           int32_t outputs, int32_t c, size_t vl) {
    const words k = words_of(b, outputs, c);
    const int8_t *weights = b->weights + c;
    vint32m4_t low = __riscv_vle32_v_i32m4(k.bias_low, vl);
    vint32m4_t high = __riscv_vle32_v_i32m4(k.bias_high, vl);
    for (const int16_t *const end = x + inputs; x != end;) {
        const int16_t *const stop = x + nn_min(NN_RVV_WIDE_MOST, (int32_t)(end - x));
        vint32m4_t sums = __riscv_vmv_v_x_i32m4(0, vl);
#pragma GCC unroll 4
        for (; x != stop; x++, weights += outputs) {
            sums = __riscv_vwmacc(sums, *x, nn_rvv_load(weights, vl), vl);
        }
        nn_rvv_wide_add(&low, &high, sums, vl);
    }
    put(&k, &b->head->common, out + c, low, high, vl);
}

void nn_fully_connected_s16_rvv(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels;
    const nn_rvv_block b = nn_rvv_open(constants, outputs, WORDS);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            size_t vl;
            for (int32_t c = 0; c < outputs; c += (int32_t)vl) {
                vl = __riscv_vsetvl_e32m4((size_t)(outputs - c));
                compute(&b, nn_wide_in(in, y, x), inputs, nn_wide_out(out, y, x), outputs, c, vl);
            }
        }
    }
}
