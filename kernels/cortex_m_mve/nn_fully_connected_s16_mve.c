/* FULLY_CONNECTED on int16, Helium: four outputs at a time; constants as nn_fully_connected_s16's.
 */
#include "nn_mve_wide.h"

void nn_fully_connected_s16_mve(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels;
    const nn_wide_block block = nn_wide_open(constants, outputs, sizeof(nn_wide_dense_channel));
    const nn_wide_dense_channel *channels = (const nn_wide_dense_channel *)block.channels;
    const int narrow = block.common.sum_bits == 32;
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *values = nn_wide_in(in, y, x);
            const int8_t *w = block.weights;
            int16_t *result = nn_wide_out(out, y, x);
            int32_t c = 0;
            for (; narrow && c + 4 <= outputs; c += 4, w += 4 * inputs) {
                int32_t sums[4] = {0, 0, 0, 0};
                nn_mve_wide_narrow4(sums, values, w, inputs, inputs);
                for (int32_t i = 0; i < 4; i++) {
                    result[c + i] = nn_wide_dense_output(sums[i], channels + c + i, &block.common);
                }
            }
            for (; c < outputs; c++, w += inputs) {
                const int64_t sum = narrow ? nn_mve_wide_narrow(0, values, w, inputs)
                                           : nn_mve_wide_long(0, values, w, inputs);
                result[c] = nn_wide_dense_output(sum, channels + c, &block.common);
            }
        }
    }
}
