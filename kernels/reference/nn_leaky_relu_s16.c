/* RELU, RELU6 and LEAKY_RELU on int16. */
#include "nn_elements.h"

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
    NN_ELEMENTS(int16_t, int16_t, rescale(c, value))
}
