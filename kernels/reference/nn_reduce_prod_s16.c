/* REDUCE_PROD of int16 over any axes. */
#include <stdint.h>

typedef int16_t nn_element;
#include "nn_product.h"

void nn_reduce_prod_s16(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out) {
    nn_product(geometry, constants, in, out, -32768);
}
