/* AVERAGE_POOL_2D: what lies outside the tensor does not count. */
#include "nn_fold.h"

NN_FOLD_PIXEL compute_pixel(const nn_area *window, const nn_pool_constants *constants,
                            int8_t *out) {
    nn_fold_pixel(window, constants, out, 0, nn_fold_sum, nn_divide,
                  window->rows * window->columns);
}

void nn_avg_pool_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window) {
    nn_for_areas(compute_pixel, geometry, constants, in, out, window);
}
