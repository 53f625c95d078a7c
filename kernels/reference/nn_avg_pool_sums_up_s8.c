/* AVERAGE_POOL_2D over the whole input, from the sums of all `count` pixels; halves are rounded up.
 */
#include "nn_arith.h"
#include "nn_uint8.h"

void nn_avg_pool_sums_up_s8(const void *constants, const int32_t *sums, int32_t count,
                            int32_t channels, int8_t *out) {
    const nn_pool_constants *c = (const nn_pool_constants *)constants;
    for (int32_t i = 0; i < channels; i++) {
        out[i] = (int8_t)nn_clamp(nn_divide_up(sums[i], count), c->clamp_min, c->clamp_max);
    }
}
