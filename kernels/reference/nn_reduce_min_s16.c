/* REDUCE_MIN of int16 over any axes. */
#include <stdint.h>

typedef int16_t nn_element;
#include "nn_extreme.h"

void nn_reduce_min_s16(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_extreme(geometry, in, out, -1);
}
