/* MIRROR_PAD, reflecting with or without the edge. */
#include "nn_arith.h"

/* Which input index stands at `position`, an input index that may lie before or after the edge. */
static inline int32_t mirror(int32_t position, int32_t size, int32_t symmetric) {
    if (position < 0) {
        return -position - symmetric;
    }
    return position < size ? position : 2 * (size - 1) - position + symmetric;
}

void nn_mirror_pad_s8(const nn_mirror_geometry *geometry, const int8_t *in, int8_t *out) {
    const nn_mirror_geometry *g = geometry;
    int32_t size[NN_MAX_RANK], index[NN_MAX_RANK] = {0}, stride[NN_MAX_RANK] = {0}, place = 0;
    for (int32_t d = 0; d < g->rank; d++) {
        size[d] = g->before[d] + g->in_size[d] + g->after[d];
    }
    do {
        int32_t offset = 0;
        for (int32_t d = 0; d < g->rank; d++) {
            offset = offset * g->in_size[d] +
                     mirror(index[d] - g->before[d], g->in_size[d], g->symmetric);
        }
        *out++ = in[offset];
    } while (nn_next(g->rank, size, index, stride, &place));
}
