/* SUM of float32 over any axes. */
#include "nn_float_reduce.h"

void nn_sum_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_float_reduce(nn_float_sum, 0.0F, geometry, in, out);
}
