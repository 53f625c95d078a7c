/* int16 activations: elements and channels side by side in vectors.
 *
 * A layer's constants are an nn_rvv_head with zero points of 0 and the bits of its sums as mode,
 * then all channels' lower halves of the biases, multipliers, shifts, and upper halves. Where sums
 * have 32 bits (see nn_wide_constants), multipliers are 65536 times those of nn_wide_channel and
 * shifts 16 less.
 */
#ifndef NN_RVV_WIDE_H
#define NN_RVV_WIDE_H

#include "nn_rvv.h"
#include "nn_wide.h"

#define NN_RVV_WIDE_WORDS 4  /* of a channel's constants */
#define NN_RVV_WIDE_MOST 511 /* products of int16 and int8 whose sum fits an int32 */

static inline const int32_t *nn_rvv_highs(const nn_rvv_block *b) {
    return b->shifts + (b->shifts - b->multipliers);
}

/* What saturates is clamped anyway. */
static inline void nn_rvv_wide_put(int16_t *out, vint32m8_t values, int32_t low, int32_t high,
                                   size_t vl) {
    vint16m4_t narrow = NN_RVV_HALVES_UP(__riscv_vnclip, values, 0);
    narrow = __riscv_vmin(__riscv_vmax(narrow, (int16_t)low, vl), (int16_t)high, vl);
    __riscv_vse16(out, narrow, vl);
}

static inline int32_t nn_rvv_element(vint32m4_t values, size_t i) {
    return __riscv_vmv_x(__riscv_vslidedown(values, i, 1));
}

/* Sums of 64 bits, without their biases, of channels [c, c + vl). */
NN_OUTLINE void nn_rvv_wide_put_long(const nn_rvv_block *b, int32_t c, int16_t *out, vint32m4_t low,
                                     vint32m4_t high, size_t vl) {
    const nn_conv_constants *const k = &b->head->common;
    const nn_wide_constants common = {k->clamp_min, k->clamp_max, 64, 0};
    for (size_t i = 0; i < vl; i++, c++) {
        const nn_wide_channel channel = {b->biases[c], nn_rvv_highs(b)[c], b->multipliers[c],
                                         b->shifts[c]};
        const int64_t sum = nn_wide_bias(nn_rvv_element(low, i), nn_rvv_element(high, i));
        out[i] = nn_wide_output(sum, &channel, &common);
    }
}

/* Adds sums of 32 bits to those of 64. */
static inline void nn_rvv_wide_add(vint32m4_t *low, vint32m4_t *high, vint32m4_t sums, size_t vl) {
    const vbool8_t carry =
        __riscv_vmadc(__riscv_vreinterpret_u32m4(*low), __riscv_vreinterpret_u32m4(sums), vl);
    *low = __riscv_vadd(*low, sums, vl);
    *high = __riscv_vadc(*high, __riscv_vsra(sums, 31, vl), carry, vl);
}

/* What the sums of channels [c, c + vl) begin with. */
static inline vint32m4_t nn_rvv_wide_begin(const nn_rvv_block *b, int32_t c, size_t vl) {
    return b->head->mode == 32 ? __riscv_vle32_v_i32m4(b->biases + c, vl)
                               : __riscv_vmv_v_x_i32m4(0, vl);
}

/* Channels [c, c + vl) of a pixel at `out`. */
static inline void nn_rvv_wide_put_pixel(const nn_rvv_block *b, int32_t c, int8_t *out,
                                         vint32m4_t sums, size_t vl) {
    const nn_conv_constants *const k = &b->head->common;
    int16_t *const to = (int16_t *)(void *)out + c;
    if (b->head->mode != 32) {
        nn_rvv_wide_put_long(b, c, to, sums, __riscv_vsra(sums, 31, vl), vl);
        return;
    }
    sums = __riscv_vmulh(sums, __riscv_vle32_v_i32m4(b->multipliers + c, vl), vl);
    const vint32m4_t shift = __riscv_vle32_v_i32m4(b->shifts + c, vl);
    sums = NN_RVV_HALVES_UP(__riscv_vssra, sums, __riscv_vreinterpret_u32m4(shift));
    nn_rvv_wide_put(to, __riscv_vlmul_ext_v_i32m4_i32m8(sums), k->clamp_min, k->clamp_max, vl);
}

/* The same of up to four pixels that are `step` bytes apart. */
static inline __attribute__((always_inline)) void
nn_rvv_wide_put_pixels(const nn_rvv_block *b, int32_t c, int8_t *out, int32_t step, vint32m4_t s0,
                       vint32m4_t s1, vint32m4_t s2, vint32m4_t s3, const int32_t pixels,
                       size_t vl) {
    nn_rvv_wide_put_pixel(b, c, out, s0, vl);
    if (pixels > 1) {
        nn_rvv_wide_put_pixel(b, c, out + step, s1, vl);
    }
    if (pixels > 2) {
        nn_rvv_wide_put_pixel(b, c, out + 2 * step, s2, vl);
    }
    if (pixels > 3) {
        nn_rvv_wide_put_pixel(b, c, out + 3 * step, s3, vl);
    }
}

#endif
