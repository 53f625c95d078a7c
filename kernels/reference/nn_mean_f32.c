/* MEAN of float32 over any axes. */
#include "nn_float_reduce.h"

void nn_mean_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    int32_t count = 1, results = 1;
    float *result = (float *)(void *)out;
    for (int32_t d = 0; d < geometry->inner_rank; d++) {
        count *= geometry->inner[d];
    }
    for (int32_t d = 0; d < geometry->outer_rank; d++) {
        results *= geometry->outer[d];
    }
    nn_float_reduce(nn_float_sum, 0.0F, geometry, in, out);
    for (int32_t i = 0; i < results; i++) {
        result[i] /= (float)count;
        NN_ONE_BY_ONE();
    }
}
