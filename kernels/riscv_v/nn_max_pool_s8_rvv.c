/* MAX_POOL_2D: channels side by side in vectors; what lies outside the tensor does not count. */
#include "nn_riscv_v.h"
#include "nn_rvv_area.h"

static void compute(const nn_area *area, int32_t channels, const nn_pool_constants *clamp,
                    int8_t *out) {
    size_t vl;
    for (int32_t c = 0; c < channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e8m4((size_t)(channels - c));
        vint8m4_t found = __riscv_vmv_v_x_i8m4(-128, vl);
        NN_RVV_FOR_PIXELS(area, c, found = __riscv_vmax(found, __riscv_vle8_v_i8m4(at, vl), vl));
        found = __riscv_vmax(found, (int8_t)clamp->clamp_min, vl);
        found = __riscv_vmin(found, (int8_t)clamp->clamp_max, vl);
        __riscv_vse8(out + c, found, vl);
    }
}

void nn_max_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    nn_for_joined_areas(compute, 1, geometry, constants, in, out, window);
}
