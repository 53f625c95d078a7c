/* MAX_POOL_2D on int16: channels side by side in vectors; what lies outside the tensor does not
 * count. */
#include "nn_riscv_v.h"
#include "nn_rvv_area.h"

static inline vint16m8_t load(const int8_t *at, size_t vl) {
    return __riscv_vle16_v_i16m8((const int16_t *)(const void *)at, vl);
}

static void compute(const nn_area *area, int32_t channels, const nn_pool_constants *clamp,
                    int8_t *out) {
    size_t vl;
    for (int32_t c = 0; c < channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e16m8((size_t)(channels - c));
        vint16m8_t found = __riscv_vmv_v_x_i16m8(-32768, vl);
        NN_RVV_FOR_PIXELS(area, 2 * c, found = __riscv_vmax(found, load(at, vl), vl));
        found = __riscv_vmax(found, (int16_t)clamp->clamp_min, vl);
        found = __riscv_vmin(found, (int16_t)clamp->clamp_max, vl);
        __riscv_vse16((int16_t *)(void *)out + c, found, vl);
    }
}

void nn_max_pool_s16_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_for_joined_areas(compute, 2, geometry, constants, in, out, window);
}
