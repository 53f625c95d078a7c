/* MEAN over rows and columns, from the sums of all pixels. */
#include "nn_arith.h"

void nn_mean_sums_s8(const void *constants, const int32_t *sums, int32_t channels, int8_t *out) {
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    for (int32_t i = 0; i < channels; i++) {
        const int32_t mean = nn_requantise(nn_wrapping_add(sums[i], -c->sum_zero_point),
                                           c->output_multiplier, c->output_shift);
        out[i] = (int8_t)nn_clamp(mean + c->output_zero_point, -128, 127);
    }
}
