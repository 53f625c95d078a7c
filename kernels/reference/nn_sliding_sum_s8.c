/* Sums over the rows of a moving window, of int8. */
#include <stdint.h>

typedef int8_t nn_summand;
#include "nn_moving_sums.h"

void nn_sliding_sum_s8(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                       void *state, int8_t *out) {
    nn_sliding_sum(geometry, inputs, state, (int32_t *)(void *)out);
}
