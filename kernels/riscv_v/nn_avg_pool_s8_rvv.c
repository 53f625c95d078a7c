/* AVERAGE_POOL_2D: channels side by side in vectors; what lies outside the tensor does not count.
 */
#include "nn_area.h"
#include "nn_riscv_v.h"
#include "nn_rvv.h"

/* Halves away from zero. */
static inline vint32m4_t divide(vint32m4_t sums, int32_t count, size_t vl) {
    const vbool8_t above = __riscv_vmsgt(sums, 0, vl);
    const vint32m4_t down = __riscv_vsub(sums, count / 2, vl);
    const vint32m4_t up = __riscv_vadd(sums, count / 2, vl);
    return __riscv_vdiv(__riscv_vmerge(down, up, above, vl), count, vl);
}

static void compute(const nn_area *area, const nn_pool_constants *clamp, int8_t *out) {
    const nn_view *in = area->in;
    size_t vl;
    for (int32_t c = 0; c < in->channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e32m4((size_t)(in->channels - c));
        vint32m4_t sums = __riscv_vmv_v_x_i32m4(0, vl);
        for (int32_t y = 0; y < area->rows; y++) {
            const int8_t *line = nn_row(in, area->y + y) + c;
            for (int32_t x = 0; x < area->columns; x++) {
                const int8_t *at = line + nn_column(in, area->x + x) * in->pixel_stride;
                sums = __riscv_vwadd_wv(sums, nn_rvv_load(at, vl), vl);
            }
        }
        const vint32m4_t mean = divide(sums, area->rows * area->columns, vl);
        __riscv_vse8(out + c, nn_rvv_narrow(mean, 0, clamp->clamp_min, clamp->clamp_max, vl), vl);
    }
}

void nn_avg_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
