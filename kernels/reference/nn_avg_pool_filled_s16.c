/* AVERAGE_POOL_2D on int16 after a PAD: what lies outside the tensor counts as elements of one
 * value.
 */
#include "nn_fold.h"

NN_FOLD_PIXEL compute_pixel(const nn_area *window, const nn_pool_constants *constants,
                            int8_t *out) {
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)constants;
    const int32_t outside = filled->elements - window->rows * window->columns;
    nn_fold_wide_pixel(window, constants, out, outside * filled->value, nn_fold_sum, nn_divide,
                       filled->elements);
}

void nn_avg_pool_filled_s16(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute_pixel, geometry, constants, in, out, window);
}
