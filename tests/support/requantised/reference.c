/* The plain kernels. */
#include "sums.h"

#include "../../../kernels/include/nn_conv.h"

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_conv_constants common = *(const nn_conv_constants *)l->block;
    const void *channels = (const nn_conv_constants *)l->block + 1;
    const nn_channel conv = ((const nn_channel *)channels)[l->dense ? 0 : c];
    const nn_dense_channel dense = ((const nn_dense_channel *)channels)[l->dense ? c : 0];
    const int32_t products = (int32_t)((uint32_t)first - (uint32_t)l->biases[c]);
    for (int32_t i = 0; i < count; i++) {
        const int32_t sum = (int32_t)((uint32_t)products + (uint32_t)i);
        out[i] =
            l->dense ? nn_dense_output(sum, &dense, &common) : nn_conv_output(sum, &conv, &common);
    }
}
