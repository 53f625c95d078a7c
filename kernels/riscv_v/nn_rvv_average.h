/* Averages: channels side by side in vectors. */
#ifndef NN_RVV_AVERAGE_H
#define NN_RVV_AVERAGE_H

#include "nn_area.h"
#include "nn_rvv.h"

/* Halves away from zero. */
static inline vint32m4_t nn_rvv_divide(vint32m4_t sums, int32_t count, size_t vl) {
    const vbool8_t above = __riscv_vmsgt(sums, 0, vl);
    const vint32m4_t down = __riscv_vsub(sums, count / 2, vl);
    const vint32m4_t up = __riscv_vadd(sums, count / 2, vl);
    return __riscv_vdiv(__riscv_vmerge(down, up, above, vl), count, vl);
}

/* All channels of a pixel: the mean of `count` elements, whose sum is `start` and the area's. */
static inline void nn_rvv_average(const nn_area *area, const nn_pool_constants *clamp, int8_t *out,
                                  int32_t start, int32_t count) {
    const nn_view *in = area->in;
    size_t vl;
    for (int32_t c = 0; c < in->channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e32m4((size_t)(in->channels - c));
        vint32m4_t sums = __riscv_vmv_v_x_i32m4(start, vl);
        for (int32_t y = 0; y < area->rows; y++) {
            const int8_t *line = nn_row(in, area->y + y) + c;
            for (int32_t x = 0; x < area->columns; x++) {
                const int8_t *at = line + nn_column(in, area->x + x) * in->pixel_stride;
                sums = __riscv_vwadd_wv(sums, nn_rvv_load(at, vl), vl);
            }
        }
        const vint32m4_t mean = nn_rvv_divide(sums, count, vl);
        __riscv_vse8(out + c, nn_rvv_narrow(mean, 0, clamp->clamp_min, clamp->clamp_max, vl), vl);
    }
}

#endif
