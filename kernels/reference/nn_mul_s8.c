/* MUL, with broadcasting. */
#include "nn_arith.h"

static inline int8_t multiply(const nn_mul_constants *c, int32_t a, int32_t b) {
    const int32_t product = (a - c->input1_zero_point) * (b - c->input2_zero_point);
    const int32_t scaled = nn_requantise(product, c->output_multiplier, c->output_shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min,
                            c->clamp_max);
}

void nn_mul_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window) {
    const nn_mul_constants c = *(const nn_mul_constants *)constants;
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    const int32_t channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < channels; i++, a += step1, b += step2) {
                result[i] = multiply(&c, *a, *b);
            }
        }
    }
}
