/* FULLY_CONNECTED of float32: products in order, then the bias. */
#include "nn_float.h"

void nn_fully_connected_f32(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window) {
    const nn_float_layer layer = nn_float_open(constants, out->channels);
    const int32_t inputs = in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const float *values = nn_float_in(in, y, x), *weights = layer.weights;
            float *result = nn_float_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++, weights += inputs) {
                float sum = 0.0F;
                for (int32_t i = 0; i < inputs; i++) {
                    sum += values[i] * weights[i];
                    NN_ONE_BY_ONE();
                }
                result[c] = nn_float_finish(&layer, sum, c);
            }
        }
    }
}
