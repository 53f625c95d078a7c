/* MEAN of int16 over rows and columns, from the sums of all pixels. */
#include "nn_wide.h"

void nn_mean_sums_s16(const void *constants, const int32_t *sums, int32_t channels, int8_t *out) {
    const nn_mean_constants *c = (const nn_mean_constants *)constants;
    int16_t *result = (int16_t *)(void *)out;
    for (int32_t i = 0; i < channels; i++) {
        const int32_t mean = nn_requantise(sums[i], c->output_multiplier, c->output_shift);
        result[i] = (int16_t)nn_clamp(mean, NN_WIDE_MIN, NN_WIDE_MAX);
    }
}
