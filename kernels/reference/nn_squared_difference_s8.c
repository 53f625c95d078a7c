/* SQUARED_DIFFERENCE, with broadcasting. */
#include "nn_pairs.h"

static inline int8_t square(const void *constants, int32_t a, int32_t b) {
    const nn_squared_difference_constants *c = (const nn_squared_difference_constants *)constants;
    const int32_t first = nn_requantise((a - c->input1_zero_point) * (1 << c->left_shift),
                                        c->input1_multiplier, c->input1_shift);
    const int32_t second = nn_requantise((b - c->input2_zero_point) * (1 << c->left_shift),
                                         c->input2_multiplier, c->input2_shift);
    const int32_t difference = first - second;
    const int32_t scaled =
        nn_requantise(difference * difference, c->output_multiplier, c->output_shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min,
                            c->clamp_max);
}

void nn_squared_difference_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                              const nn_view *out, const nn_window *window) {
    const nn_squared_difference_constants c = *(const nn_squared_difference_constants *)constants;
    nn_for_pairs(square, &c, in1, in2, out, window);
}
