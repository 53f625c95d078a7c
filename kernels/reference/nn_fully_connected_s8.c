/* FULLY_CONNECTED: four outputs at a time, one dense layer a pixel. */
#include "nn_conv.h"
#include "nn_dot.h"

void nn_fully_connected_s8(const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window, void *scratch) {
    const nn_conv_constants common = *(const nn_conv_constants *)constants;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const int8_t *first = nn_weights(constants, outputs, sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x);
            const int8_t *weights = first;
            int8_t *result = nn_out_pixel(out, y, x);
            int32_t c = 0;
            for (; NN_FOURS && c + 4 <= outputs; c += 4, weights += 4 * inputs) {
                int32_t sums[4] = {0, 0, 0, 0};
                nn_dot4(sums, values, weights, inputs, inputs);
                for (int32_t i = 0; i < 4; i++) {
                    result[c + i] = nn_dense_output(sums[i], channels + c + i, &common);
                }
            }
            for (; c < outputs; c++, weights += inputs) {
                result[c] = nn_dense_output(nn_dot(values, weights, inputs), channels + c, &common);
            }
        }
    }
}
