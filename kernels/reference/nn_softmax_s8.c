/* SOFTMAX over the channels, in the order and precision of the reference: float32, a table of
 * exponentials, a sequential sum, one reciprocal. */
#include "nn_arith.h"

/* round(value), halves up; value not negative. What exceeds any output is cut off before the
 * conversion, which would be undefined there. */
static inline int32_t round_positive(float value) {
    if (value >= 1024.0f) {
        return 1024;
    }
    const int32_t whole = (int32_t)value;
    return whole + (value - (float)whole >= 0.5f);
}

static void softmax(const nn_softmax_constants *c, const int8_t *in, int8_t *out, int32_t count) {
    float sum = 0.0f, factor;
    int32_t largest = -128, offset;
    for (int32_t i = 0; i < count; i++) {
        largest = nn_max(largest, in[i]);
    }
    offset = 255 - largest;
    for (int32_t i = 0; i < count; i++) {
        sum += c->exponentials[offset + in[i]];
    }
    factor = 1.0f / (sum * c->output_scale);
    for (int32_t i = 0; i < count; i++) {
        const int32_t scaled = round_positive(c->exponentials[offset + in[i]] * factor);
        out[i] = (int8_t)nn_clamp(scaled + c->output_zero_point, -128, 127);
    }
}

void nn_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            softmax((const nn_softmax_constants *)constants, nn_pixel(in, y, x),
                    nn_pixel(out, y, x), out->channels);
        }
    }
}
