/* A part of a concatenation of channels, pixel by pixel. */
#include "nn_arith.h"

void nn_concat_s8(const nn_view *in, const nn_view *out, const nn_window *window, int32_t channel) {
    const size_t count = (size_t)in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            NN_MEMCPY(nn_out_pixel(out, y, x) + channel, nn_pixel(in, y, x), count);
        }
    }
}
