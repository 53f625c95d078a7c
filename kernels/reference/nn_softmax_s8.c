/* SOFTMAX over the channels. */
#include "nn_softmax.h"

static void softmax(const int32_t *exponentials, const int8_t *in, int8_t *out, int32_t count) {
    int32_t sum, factor, exponent;
    const int32_t largest = nn_row_sum(exponentials, in, count, &sum);
    if (sum == NN_SUM_LIMIT) {
        NN_MEMSET(out, -128, (size_t)count);
        return;
    }
    factor = nn_reciprocal(sum, &exponent);
    for (int32_t i = 0; i < count; i++) {
        const int32_t scaled = nn_high_multiply(factor, exponentials[largest - in[i]]);
        out[i] = (int8_t)(nn_min(nn_rounding_shift(scaled, exponent), 255) - 128);
    }
}

void nn_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    const nn_softmax_constants *c = (const nn_softmax_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            softmax(c->exponentials, nn_pixel(in, y, x), nn_out_pixel(out, y, x), out->channels);
        }
    }
}
