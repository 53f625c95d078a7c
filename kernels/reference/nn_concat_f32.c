/* A part of a concatenation of channels of float32, pixel by pixel. */
#include "nn_arith.h"
#include "nn_f32.h"

void nn_concat_f32(const nn_view *in, const nn_view *out, const nn_window *window,
                   int32_t channel) {
    const size_t count = 4 * (size_t)in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            NN_MEMMOVE(nn_out_pixel(out, y, x) + 4 * channel, nn_pixel(in, y, x), count);
        }
    }
}
