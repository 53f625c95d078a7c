/* What the vector kernels share: constants, requantisation, narrowing.
 *
 * VSMUL with rounding mode rnu is floor((a * b + 2^30) / 2^31): exactly the reference's first
 * rounding (it saturates only for -2^31 * -2^31, and no multiplier is -2^31). VSSRA rounds halves
 * up as well, but the reference's second rounding takes halves away from zero: adding -1 to a
 * negative quotient that is to be shifted makes them equal, because
 * floor((q - 1 + 2^(e-1)) / 2^e) for q < 0 rounds a half down and nothing else otherwise. Outputs
 * that are clamped at the zero point need no such care: negative quotients give at most 0 either
 * way.
 */
#ifndef NN_RVV_H
#define NN_RVV_H

#include <riscv_vector.h>

#include "nn_conv.h"

/* A fixed-point instruction that rounds halves up. Clang before 17 hands no rounding mode over: it
 * takes the register's. */
#if defined(__clang_major__) && __clang_major__ < 17
static inline size_t nn_rvv_halves_up(size_t vl) {
    __asm volatile("csrwi vxrm, 0" : : : "memory");
    return vl;
}
#define NN_RVV_HALVES_UP(function, a, b) function((a), (b), nn_rvv_halves_up(vl))
#else
#define NN_RVV_HALVES_UP(function, a, b) function((a), (b), __RISCV_VXRM_RNU, vl)
#endif

typedef enum { NN_RVV_PLAIN = 0, NN_RVV_ODD = 1, NN_RVV_GENERAL = 2 } nn_rvv_mode;

/* Then all channels' biases, multipliers, shifts (as nn_channel), then 16-byte aligned the weights:
 * all channels of a tap, then those of the next. */
typedef struct {
    nn_conv_constants common;
    int32_t mode;   /* nn_rvv_mode */
    int32_t inputs; /* channels that an output channel meets */
    int32_t reserved[2];
} nn_rvv_head;

typedef struct {
    const nn_rvv_head *head;
    const int32_t *biases, *multipliers, *shifts;
    const int8_t *weights;
} nn_rvv_block;

/* `words`: of a channel's constants. */
static inline nn_rvv_block nn_rvv_open(const void *constants, int32_t channels,
                                       const int32_t words) {
    nn_rvv_block b;
    b.head = (const nn_rvv_head *)constants;
    b.biases = (const int32_t *)(const void *)(b.head + 1);
    b.multipliers = b.biases + channels;
    b.shifts = b.multipliers + channels;
    b.weights = (const int8_t *)constants +
                (sizeof(nn_rvv_head) + (size_t)(channels * words * 4 + 15)) / 16 * 16;
    return b;
}

/* Sums with their biases, requantised: any shift. */
static inline vint32m4_t nn_rvv_general(vint32m4_t sums, vint32m4_t multiplier, vint32m4_t shift,
                                        size_t vl) {
    const vint32m4_t up = __riscv_vmax(shift, 0, vl);
    const vint32m4_t down = __riscv_vneg(__riscv_vmin(shift, 0, vl), vl);
    const vint32m4_t moved = __riscv_vsll(sums, __riscv_vreinterpret_u32m4(up), vl);
    vint32m4_t q = NN_RVV_HALVES_UP(__riscv_vsmul, moved, multiplier);
    const vint32m4_t some = __riscv_vsra(__riscv_vneg(down, vl), 31, vl); /* -1 if shifted down */
    q = __riscv_vadd(q, __riscv_vand(__riscv_vsra(q, 31, vl), some, vl), vl);
    return NN_RVV_HALVES_UP(__riscv_vssra, q, __riscv_vreinterpret_u32m4(down));
}

/* The same where all elements have one multiplier and shift. */
static inline vint32m8_t nn_rvv_scale(vint32m8_t values, int32_t multiplier, int32_t shift,
                                      size_t vl) {
    if (shift > 0) {
        values = __riscv_vsll(values, (size_t)shift, vl);
    }
    vint32m8_t q = NN_RVV_HALVES_UP(__riscv_vsmul, values, multiplier);
    if (shift >= 0) {
        return q;
    }
    q = __riscv_vadd(q, __riscv_vsra(q, 31, vl), vl);
    return NN_RVV_HALVES_UP(__riscv_vssra, q, (size_t)-shift);
}

/* Adds the zero point and clamps; what saturates on the way is clamped anyway. */
static inline vint8m2_t nn_rvv_narrow(vint32m8_t values, int32_t zero_point, int32_t low,
                                      int32_t high, size_t vl) {
    vint16m4_t narrow = NN_RVV_HALVES_UP(__riscv_vnclip, values, 0);
    narrow = __riscv_vsadd(narrow, (int16_t)zero_point, vl);
    narrow = __riscv_vmax(narrow, (int16_t)low, vl);
    narrow = __riscv_vmin(narrow, (int16_t)high, vl);
    return __riscv_vncvt_x(narrow, vl);
}

static inline vint8m1_t nn_rvv_output(vint32m4_t values, const nn_conv_constants *c, size_t vl) {
    const vint32m8_t wide = __riscv_vlmul_ext_v_i32m4_i32m8(values);
    return __riscv_vlmul_trunc_v_i8m2_i8m1(
        nn_rvv_narrow(wide, c->output_zero_point, c->clamp_min, c->clamp_max, vl));
}

/* int8 in memory as int16. */
static inline vint16m2_t nn_rvv_load(const int8_t *from, size_t vl) {
    return __riscv_vsext_vf2(__riscv_vle8_v_i8m1(from, vl), vl);
}

/* One pixel of channels [c, c + vl), of which some have a factor of 1 or more. */
NN_OUTLINE void nn_rvv_put_general(const nn_rvv_block *b, int32_t c, int8_t *out, vint32m4_t sums,
                                   size_t vl) {
    const vint32m4_t multiplier = __riscv_vle32_v_i32m4(b->multipliers + c, vl);
    const vint32m4_t shift = __riscv_vle32_v_i32m4(b->shifts + c, vl);
    const vint32m4_t q = nn_rvv_general(sums, multiplier, shift, vl);
    __riscv_vse8(out, nn_rvv_output(q, &b->head->common, vl), vl);
}

/* Requantises and stores channels [c, c + vl) of up to four pixels that are `step` bytes apart;
 * the number of pixels is known when it is compiled. Zero point and clamp are computed for all of
 * them at once, in registers side by side: what their tails hold is never stored. */
static inline __attribute__((always_inline)) void
nn_rvv_put_pixels(const nn_rvv_block *b, int32_t c, int8_t *out, int32_t step, vint32m4_t s0,
                  vint32m4_t s1, vint32m4_t s2, vint32m4_t s3, const int32_t pixels, size_t vl) {
    const nn_conv_constants k = b->head->common;
    const int32_t mode = b->head->mode;
    if (mode == NN_RVV_GENERAL) {
        nn_rvv_put_general(b, c, out, s0, vl);
        if (pixels > 1) {
            nn_rvv_put_general(b, c, out + step, s1, vl);
        }
        if (pixels > 2) {
            nn_rvv_put_general(b, c, out + 2 * step, s2, vl);
        }
        if (pixels > 3) {
            nn_rvv_put_general(b, c, out + 3 * step, s3, vl);
        }
        return;
    }
    const vint32m4_t multiplier = __riscv_vle32_v_i32m4(b->multipliers + c, vl);
    const vint32m4_t shift = __riscv_vle32_v_i32m4(b->shifts + c, vl);
    const vuint32m4_t right = __riscv_vreinterpret_u32m4(__riscv_vneg(shift, vl));
    s0 = NN_RVV_HALVES_UP(__riscv_vsmul, s0, multiplier);
    s1 = NN_RVV_HALVES_UP(__riscv_vsmul, s1, multiplier);
    s2 = NN_RVV_HALVES_UP(__riscv_vsmul, s2, multiplier);
    s3 = NN_RVV_HALVES_UP(__riscv_vsmul, s3, multiplier);
    if (mode != NN_RVV_PLAIN) {
        s0 = __riscv_vadd(s0, __riscv_vsra(s0, 31, vl), vl);
        s1 = __riscv_vadd(s1, __riscv_vsra(s1, 31, vl), vl);
        s2 = __riscv_vadd(s2, __riscv_vsra(s2, 31, vl), vl);
        s3 = __riscv_vadd(s3, __riscv_vsra(s3, 31, vl), vl);
    }
    s0 = NN_RVV_HALVES_UP(__riscv_vssra, s0, right);
    s1 = NN_RVV_HALVES_UP(__riscv_vssra, s1, right);
    s2 = NN_RVV_HALVES_UP(__riscv_vssra, s2, right);
    s3 = NN_RVV_HALVES_UP(__riscv_vssra, s3, right);
    if (pixels == 1) {
        __riscv_vse8(out, nn_rvv_output(s0, &k, vl), vl);
        return;
    }
    vint16m8_t four = __riscv_vundefined_i16m8();
    four = __riscv_vset(four, 0, NN_RVV_HALVES_UP(__riscv_vnclip, s0, 0));
    four = __riscv_vset(four, 1, NN_RVV_HALVES_UP(__riscv_vnclip, s1, 0));
    four = __riscv_vset(four, 2, NN_RVV_HALVES_UP(__riscv_vnclip, s2, 0));
    four = __riscv_vset(four, 3, NN_RVV_HALVES_UP(__riscv_vnclip, s3, 0));
    const size_t all = __riscv_vsetvlmax_e16m8();
    four = __riscv_vsadd(four, (int16_t)k.output_zero_point, all);
    four = __riscv_vmax(four, (int16_t)k.clamp_min, all);
    four = __riscv_vmin(four, (int16_t)k.clamp_max, all);
    const vint8m4_t bytes = __riscv_vncvt_x(four, all);
    __riscv_vse8(out, __riscv_vget_i8m1(bytes, 0), vl);
    out += step;
    __riscv_vse8(out, __riscv_vget_i8m1(bytes, 1), vl);
    if (pixels > 2) {
        out += step;
        __riscv_vse8(out, __riscv_vget_i8m1(bytes, 2), vl);
    }
    if (pixels > 3) {
        out += step;
        __riscv_vse8(out, __riscv_vget_i8m1(bytes, 3), vl);
    }
}

#endif
