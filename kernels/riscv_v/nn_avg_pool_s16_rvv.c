/* AVERAGE_POOL_2D on int16: what lies outside the tensor does not count. */
#include "nn_riscv_v.h"
#include "nn_rvv_average.h"

static void compute(const nn_area *area, int32_t channels, const nn_pool_constants *clamp,
                    int8_t *out) {
    nn_rvv_average(area, channels, clamp, out, 0, area->rows * area->columns, 1);
}

void nn_avg_pool_s16_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window) {
    nn_for_joined_areas(compute, 2, geometry, constants, in, out, window);
}
