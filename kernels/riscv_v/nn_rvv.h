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
    int32_t mode; /* nn_rvv_mode */
    int32_t reserved[3];
} nn_rvv_head;

typedef struct {
    const nn_rvv_head *head;
    const int32_t *biases, *multipliers, *shifts;
    const int8_t *weights;
} nn_rvv_block;

static inline nn_rvv_block nn_rvv_open(const void *constants, int32_t channels) {
    nn_rvv_block b;
    b.head = (const nn_rvv_head *)constants;
    b.biases = (const int32_t *)(const void *)(b.head + 1);
    b.multipliers = b.biases + channels;
    b.shifts = b.multipliers + channels;
    b.weights = (const int8_t *)constants +
                (sizeof(nn_rvv_head) + (size_t)channels * 12 + (size_t)15) / 16 * 16;
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

/* The same by mode; `right`: minus the shifts, unless the mode is general. */
static inline vint32m4_t nn_rvv_requantise(vint32m4_t sums, vint32m4_t multiplier, vint32m4_t right,
                                           int32_t mode, size_t vl) {
    vint32m4_t q = NN_RVV_HALVES_UP(__riscv_vsmul, sums, multiplier);
    if (mode != NN_RVV_PLAIN) {
        q = __riscv_vadd(q, __riscv_vsra(q, 31, vl), vl);
    }
    return NN_RVV_HALVES_UP(__riscv_vssra, q, __riscv_vreinterpret_u32m4(right));
}

/* The same where all elements have one multiplier and shift. */
static inline vint32m4_t nn_rvv_scale(vint32m4_t values, int32_t multiplier, int32_t shift,
                                      size_t vl) {
    if (shift > 0) {
        values = __riscv_vsll(values, (size_t)shift, vl);
    }
    vint32m4_t q = NN_RVV_HALVES_UP(__riscv_vsmul, values, multiplier);
    if (shift >= 0) {
        return q;
    }
    q = __riscv_vadd(q, __riscv_vsra(q, 31, vl), vl);
    return NN_RVV_HALVES_UP(__riscv_vssra, q, (size_t)-shift);
}

/* Adds the zero point and clamps; what saturates on the way is clamped anyway. */
static inline vint8m1_t nn_rvv_narrow(vint32m4_t values, int32_t zero_point, int32_t low,
                                      int32_t high, size_t vl) {
    vint16m2_t narrow = NN_RVV_HALVES_UP(__riscv_vnclip, values, 0);
    narrow = __riscv_vsadd(narrow, (int16_t)zero_point, vl);
    narrow = __riscv_vmax(narrow, (int16_t)low, vl);
    narrow = __riscv_vmin(narrow, (int16_t)high, vl);
    return __riscv_vncvt_x(narrow, vl);
}

static inline vint8m1_t nn_rvv_output(vint32m4_t values, const nn_conv_constants *c, size_t vl) {
    return nn_rvv_narrow(values, c->output_zero_point, c->clamp_min, c->clamp_max, vl);
}

/* int8 in memory as int16. */
static inline vint16m2_t nn_rvv_load(const int8_t *from, size_t vl) {
    return __riscv_vsext_vf2(__riscv_vle8_v_i8m1(from, vl), vl);
}

#endif
