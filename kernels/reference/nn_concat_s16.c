/* A part of a concatenation of channels of int16, pixel by pixel. */
#include "nn_wide.h"

void nn_concat_s16(const nn_view *in, const nn_view *out, const nn_window *window,
                   int32_t channel) {
    const size_t count = 2 * (size_t)in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            NN_MEMCPY(nn_wide_out(out, y, x) + channel, nn_wide_in(in, y, x), count);
        }
    }
}
