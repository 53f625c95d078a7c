/* AVERAGE_POOL_2D: what lies outside the tensor does not count. */
#include "nn_mul32.h"
#include "nn_mul32_average.h"

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    nn_mul32_average_area(area, constants, out, 0, (uint32_t)(area->rows * area->columns));
}

void nn_avg_pool_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
