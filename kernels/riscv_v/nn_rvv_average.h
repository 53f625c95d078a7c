/* Averages: channels side by side in vectors. */
#ifndef NN_RVV_AVERAGE_H
#define NN_RVV_AVERAGE_H

#include "nn_rvv_area.h"
#include "nn_rvv_wide.h"

/* Halves away from zero. */
static inline vint32m8_t nn_rvv_divide(vint32m8_t sums, int32_t count, size_t vl) {
    const vbool4_t above = __riscv_vmsgt(sums, 0, vl);
    sums = __riscv_vsub(sums, count / 2, vl);
    sums = __riscv_vadd_mu(above, sums, sums, count / 2 * 2, vl);
    return __riscv_vdiv(sums, count, vl);
}

static inline __attribute__((always_inline)) vint32m8_t nn_rvv_plus(vint32m8_t sums,
                                                                    const int8_t *at,
                                                                    const int wide, size_t vl) {
    const vint16m4_t values = wide ? __riscv_vle16_v_i16m4((const int16_t *)(const void *)at, vl)
                                   : __riscv_vsext_vf2(__riscv_vle8_v_i8m2(at, vl), vl);
    return __riscv_vwadd_wv(sums, values, vl);
}

/* `channels` of a pixel: the mean of `count` elements, whose sum is `start` and the area's;
 * `wide`: they are int16. */
static inline __attribute__((always_inline)) void
nn_rvv_average(const nn_area *area, int32_t channels, const nn_pool_constants *clamp, int8_t *out,
               int32_t start, int32_t count, const int wide) {
    const int32_t bytes = wide ? 2 : 1;
    size_t vl;
    for (int32_t c = 0; c < channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e32m8((size_t)(channels - c));
        vint32m8_t sums = __riscv_vmv_v_x_i32m8(start, vl);
        NN_RVV_FOR_PIXELS(area, c * bytes, sums = nn_rvv_plus(sums, at, wide, vl));
        const vint32m8_t mean = nn_rvv_divide(sums, count, vl);
        if (wide) {
            nn_rvv_wide_put((int16_t *)(void *)out + c, mean, clamp->clamp_min, clamp->clamp_max,
                            vl);
        } else {
            __riscv_vse8(out + c, nn_rvv_narrow(mean, 0, clamp->clamp_min, clamp->clamp_max, vl),
                         vl);
        }
    }
}

#endif
