/* AVERAGE_POOL_2D over the whole input, from the sums of all `count` pixels. */
#include "nn_arith.h"

void nn_avg_pool_sums_s8(const void *constants, const int32_t *sums, int32_t count,
                         int32_t channels, int8_t *out) {
    const nn_pool_constants *c = (const nn_pool_constants *)constants;
    for (int32_t i = 0; i < channels; i++) {
        const int32_t half = sums[i] > 0 ? count / 2 : -(count / 2); /* halves away from zero */
        out[i] = (int8_t)nn_clamp((sums[i] + half) / count, c->clamp_min, c->clamp_max);
    }
}
