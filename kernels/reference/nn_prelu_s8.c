/* PRELU: elements below the zero point are multiplied by alpha, which broadcasts. */
#include "nn_arith.h"

static inline int8_t prelu(const nn_prelu_constants *c, int32_t element, int32_t alpha) {
    const int32_t value = element - c->input_zero_point;
    const int32_t scaled = value >= 0
                               ? nn_requantise(value, c->positive_multiplier, c->positive_shift)
                               : nn_requantise(value * (alpha - c->alpha_zero_point),
                                               c->negative_multiplier, c->negative_shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), -128, 127);
}

void nn_prelu_s8(const void *constants, const nn_view *in, const nn_view *alpha, const nn_view *out,
                 const nn_window *window) {
    const nn_prelu_constants c = *(const nn_prelu_constants *)constants;
    const int32_t step = in->channels > 1, alpha_step = alpha->channels > 1;
    const int32_t channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *value = nn_pixel(in, y, x), *factor = nn_pixel(alpha, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < channels; i++, value += step, factor += alpha_step) {
                result[i] = prelu(&c, *value, *factor);
            }
        }
    }
}
