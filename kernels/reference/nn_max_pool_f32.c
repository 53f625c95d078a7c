/* MAX_POOL_2D of float32: what lies outside the tensor does not count. */
#include "nn_area.h"
#include "nn_float.h"

static void greatest(const nn_area *window, const nn_pool_constants *constants, int8_t *out) {
    const nn_float_limits *limits = (const nn_float_limits *)(const void *)constants;
    float *result = (float *)(void *)out;
    for (int32_t c = 0; c < window->in->channels; c++) {
        float most = -NN_FLOAT_MAX;
        for (int32_t y = window->y; y < window->y + window->rows; y++) {
            for (int32_t x = window->x; x < window->x + window->columns; x++) {
                const float value = nn_float_in(window->in, y, x)[c];
                most = most < value ? value : most;
                NN_ONE_BY_ONE();
            }
        }
        result[c] = nn_float_clamp(most, limits->low, limits->high);
    }
}

void nn_max_pool_f32(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                     const nn_view *out, const nn_window *window) {
    nn_for_areas(greatest, geometry, constants, in, out, window);
}
