/* AVERAGE_POOL_2D on int16 after a PAD: what lies outside the tensor counts as elements of one
 * value.
 */
#include "nn_area.h"
#include "nn_wide.h"

/* All channels of one output pixel. */
static void compute_pixel(const nn_area *window, const nn_pool_constants *constants, int8_t *out) {
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)constants;
    const int32_t outside = filled->elements - window->rows * window->columns;
    int16_t *result = (int16_t *)(void *)out;
    for (int32_t c = 0; c < window->in->channels; c++) {
        int32_t found = outside * filled->value;
        for (int32_t y = window->y; y < window->y + window->rows; y++) {
            for (int32_t x = window->x; x < window->x + window->columns; x++) {
                found += nn_wide_in(window->in, y, x)[c];
            }
        }
        found = nn_divide(found, filled->elements);
        result[c] = (int16_t)nn_clamp(found, constants->clamp_min, constants->clamp_max);
    }
}

void nn_avg_pool_filled_s16(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute_pixel, geometry, constants, in, out, window);
}
