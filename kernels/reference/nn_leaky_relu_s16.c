/* RELU, RELU6 and LEAKY_RELU on int16. */
#include "nn_wide.h"

/* What is below 0: a negative factor rounds as its opposite does, and the result changes sign. */
static inline int32_t leak(const nn_leaky_constants *c, int32_t value) {
    const int32_t multiplier = c->negative_multiplier, shift = c->negative_shift;
    return multiplier >= 0 ? nn_requantise(value, multiplier, shift)
                           : -nn_requantise(value, -multiplier, shift);
}

static inline int16_t rescale(const nn_leaky_constants *c, int32_t value) {
    const int32_t scaled = value >= 0
                               ? nn_requantise(value, c->positive_multiplier, c->positive_shift)
                               : leak(c, value);
    return (int16_t)nn_clamp(scaled, c->clamp_min, c->clamp_max);
}

void nn_leaky_relu_s16(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    const nn_leaky_constants *c = (const nn_leaky_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *value = nn_wide_in(in, y, x);
            int16_t *result = nn_wide_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++) {
                result[i] = rescale(c, value[i]);
            }
        }
    }
}
