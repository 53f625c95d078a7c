/* REDUCE_MAX of float32 over any axes. */
#include "nn_float_reduce.h"

static inline float larger(float so_far, float x) {
    return x > so_far ? x : so_far;
}

void nn_reduce_max_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_float_reduce(larger, -NN_FLOAT_MAX, geometry, in, out);
}
