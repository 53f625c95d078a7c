/* Maxima over the rows of a moving window, of int8. */
#include <stdint.h>

typedef int8_t nn_summand;
#include "nn_moving_maxima.h"

void nn_sliding_max_s8(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                       void *state, int8_t *out) {
    nn_sliding_max(geometry, inputs, state, (nn_summand *)(void *)out);
}
