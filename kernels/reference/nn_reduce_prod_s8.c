/* REDUCE_PROD over any axes. */
#include <stdint.h>

typedef int8_t nn_element;
#include "nn_product.h"

void nn_reduce_prod_s8(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                       int8_t *out) {
    nn_product(geometry, constants, in, out, -128);
}
