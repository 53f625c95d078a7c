/* DEPTHWISE_CONV_2D of float32. */
#include "nn_float_conv.h"

void nn_depthwise_conv2d_f32(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_conv_geometry *g = geometry;
    const nn_float_layer layer = nn_float_open(constants, out->channels);
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_float_patch p = nn_float_patch_at(g, in, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++) {
                result[c] = nn_float_finish(
                    &layer,
                    nn_float_sum_up(g, in, &p, c / g->groups, 1, layer.weights + c, out->channels),
                    c);
            }
        }
    }
}
