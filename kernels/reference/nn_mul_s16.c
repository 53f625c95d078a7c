/* MUL on int16, with broadcasting. */
#include "nn_wide.h"

static inline int16_t multiply(const nn_mul_constants *c, int32_t a, int32_t b) {
    const int32_t scaled = nn_requantise(a * b, c->output_multiplier, c->output_shift);
    return (int16_t)nn_clamp(scaled, c->clamp_min, c->clamp_max);
}

void nn_mul_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    const nn_mul_constants c = *(const nn_mul_constants *)constants;
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *a = nn_wide_in(in1, y, x), *b = nn_wide_in(in2, y, x);
            int16_t *result = nn_wide_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++, a += step1, b += step2) {
                result[i] = multiply(&c, *a, *b);
            }
        }
    }
}
