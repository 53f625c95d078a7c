/* Elements of one dimension, by a table of their places. */
#include "nn_arith.h"

void nn_gather_s8(const nn_gather_geometry *geometry, const int8_t *in, int8_t *out) {
    const nn_gather_geometry *g = geometry;
    const int32_t inner = g->inner;
    for (int32_t o = 0; o < g->outer; o++, in += g->size * inner) {
        for (int32_t i = 0; i < g->count; i++) {
            const int8_t *from = in + g->indices[i] * inner;
            if (inner == 1) {
                *out++ = *from;
            } else {
                NN_MEMCPY(out, from, (size_t)inner);
                out += inner;
            }
        }
    }
}
