/* FULLY_CONNECTED on int16: two or four outputs at a time, from weights as nn_dsp_wide.h has them.
 */
#include "nn_dsp_wide.h"

void nn_fully_connected_s16_dsp(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels, quads = (inputs + 3) / 4;
    const nn_wide_block block = nn_wide_open(constants, outputs, sizeof(nn_wide_dense_channel));
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_wide_dense_channel *channel = (const nn_wide_dense_channel *)block.channels;
            const uint32_t *w = (const uint32_t *)(const void *)block.weights;
            const int16_t *values = nn_wide_in(in, y, x);
            int16_t *result = nn_wide_out(out, y, x);
            if (scratch != NULL) { /* the inputs are no whole quads */
                int16_t *filled = (int16_t *)scratch;
                __builtin_memset(filled + 4 * quads - 4, 0, 8);
                __builtin_memcpy(filled, values, 2 * (size_t)inputs);
                values = filled;
            }
            for (int32_t left = outputs, count; left > 0; left -= count) {
                int64_t sums[4];
                count = nn_min(left, 2);
                if (left >= 4 && block.common.sum_bits == 32) {
                    count = 4;
                    w = nn_dsp_wide_narrow41(sums, w, values, quads);
                } else {
                    w = nn_dsp_wide_pair(sums, block.common.sum_bits, w, values, NULL, quads);
                }
                for (int32_t i = 0; i < count; i++, channel++) {
                    *result++ = nn_wide_dense_output(sums[i], channel, &block.common);
                }
            }
        }
    }
}
