/* AVERAGE_POOL_2D after a PAD: what lies outside the tensor counts as elements of one value. */
#include "nn_riscv_v.h"
#include "nn_rvv_average.h"

static void compute(const nn_area *area, int32_t channels, const nn_pool_constants *clamp,
                    int8_t *out) {
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)clamp;
    const int32_t outside = filled->elements - area->rows * area->columns;
    nn_rvv_average(area, channels, clamp, out, outside * filled->value, filled->elements, 0);
}

void nn_avg_pool_filled_s8_rvv(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_joined_areas(compute, 1, geometry, constants, in, out, window);
}
