/* AVERAGE_POOL_2D of int16 over the whole input, from the sums of its `count` pixels. */
#include "nn_area.h"

void nn_avg_pool_sums_s16(const void *constants, const int32_t *sums, int32_t count,
                          int32_t channels, int8_t *out) {
    const nn_pool_constants *c = (const nn_pool_constants *)constants;
    int16_t *result = (int16_t *)(void *)out;
    for (int32_t i = 0; i < channels; i++) {
        result[i] = (int16_t)nn_clamp(nn_divide(sums[i], count), c->clamp_min, c->clamp_max);
    }
}
