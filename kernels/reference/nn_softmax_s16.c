/* SOFTMAX on int16: exponentials and the reciprocal of their sum from interpolated tables. */
#include "nn_wide.h"

/* A row's exponentials, which go to `out` first, and their sum. */
static int32_t exponentials(const nn_wide_softmax_constants *c, const int16_t *in, int16_t *out,
                            int32_t channels) {
    int32_t most = in[0], sum = 0;
    for (int32_t i = 1; i < channels; i++) {
        most = nn_max(most, in[i]);
    }
    for (int32_t i = 0; i < channels; i++) {
        const int32_t place = nn_requantise(in[i] - most, c->multiplier, c->shift);
        const int32_t kept = nn_clamp(place, NN_WIDE_MIN - 32767, 0) + 32767;
        out[i] = (int16_t)nn_wide_interpolate(c->exponentials, kept);
        sum += out[i];
    }
    return sum;
}

void nn_softmax_s16(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window) {
    const nn_wide_softmax_constants *c = (const nn_wide_softmax_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            int16_t *result = nn_wide_out(out, y, x);
            const int32_t sum = exponentials(c, nn_wide_in(in, y, x), result, out->channels);
            const int32_t bits = 32 - NN_CLZ32((uint32_t)sum);
            /* The sum as 65536 to 131072, of which the table has the reciprocals. */
            const int64_t aligned = ((int64_t)sum << (31 - bits)) + (1 << 13);
            const int32_t place =
                nn_clamp((int32_t)(aligned >> 14) - 98304, NN_WIDE_MIN, NN_WIDE_MAX);
            const int32_t factor = nn_wide_interpolate(c->reciprocals, place);
            const int32_t half = 1 << (bits - 2);
            for (int32_t i = 0; i < out->channels; i++) {
                const int64_t product = (int64_t)result[i] * factor + half;
                result[i] = (int16_t)nn_clamp((int32_t)(product >> (bits - 1)), 0, NN_WIDE_MAX);
            }
        }
    }
}
