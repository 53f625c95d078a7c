/* REDUCE_PROD of float32 over any axes. */
#include "nn_float_reduce.h"

static inline float product(float so_far, float x) {
    return so_far * x;
}

void nn_reduce_prod_f32(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_float_reduce(product, 1.0F, geometry, in, out);
}
