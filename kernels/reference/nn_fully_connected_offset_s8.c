/* FULLY_CONNECTED whose filter has a zero point: it is taken from the sum of the products as often
 * as the sum of the inputs says. One dense layer a pixel. */
#include "nn_conv.h"
#include "nn_dot.h"
#include "nn_uint8.h"

/* What is to be taken from every output's sum of products: the inputs' and the filter's zero
 * points. */
static int32_t sum_inputs(const int8_t *values, int32_t inputs) {
    int32_t sum = 0;
    for (int32_t i = 0; i < inputs; i++) {
        sum += values[i];
    }
    return sum;
}

void nn_fully_connected_offset_s8(const void *constants, const nn_view *in, const nn_view *out,
                                  const nn_window *window, void *scratch) {
    const int32_t filter_zero_point = *(const int32_t *)constants;
    const void *own = nn_behind_offset(constants);
    const nn_conv_constants common = *(const nn_conv_constants *)own;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)own + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const int8_t *first = nn_weights(own, outputs, sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x), *weights = first;
            const int32_t taken = filter_zero_point * sum_inputs(values, inputs);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t c = 0; c < outputs; c++, weights += inputs) {
                const int32_t sum = nn_dot(values, weights, inputs) - taken;
                result[c] = nn_dense_output(sum, channels + c, &common);
            }
        }
    }
}
