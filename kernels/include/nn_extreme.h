/* REDUCE_MAX and REDUCE_MIN: one loop, in which the least is the complement of the greatest
 * complement. The file that includes it says what an nn_element is. */
#ifndef NN_EXTREME_H
#define NN_EXTREME_H

#include "nn_arith.h"

/* The greatest of `count` elements that lie `stride` apart and of `found`; all are complemented by
 * `flip`. */
static inline int32_t nn_greatest(const nn_element *in, int32_t stride, int32_t count,
                                  int32_t found, int32_t flip) {
    for (; count > 0; count--, in += stride) {
        found = nn_max(found, *in ^ flip);
    }
    return found;
}

/* One line of `count` outputs whose elements lie side by side. */
static inline void nn_extreme_line(const nn_reduce_geometry *g, const nn_element *in,
                                   nn_element *out, int32_t count, int32_t flip) {
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    NN_MEMCPY(out, in, (size_t)count * sizeof(nn_element));
    while (nn_next(g->inner_rank, g->inner, index, g->inner_stride, &offset)) {
        const nn_element *line = in + offset;
        for (int32_t i = 0; i < count; i++) {
            out[i] = (nn_element)(nn_max(out[i] ^ flip, line[i] ^ flip) ^ flip);
        }
    }
}

/* One output. */
static inline nn_element nn_extreme_of(const nn_reduce_geometry *g, const nn_element *in,
                                       int32_t flip) {
    const int32_t last = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, found = INT32_MIN;
    do {
        found = nn_greatest(in + offset, g->inner_stride[last], g->inner[last], found, flip);
    } while (nn_next(last, g->inner, index, g->inner_stride, &offset));
    return (nn_element)(found ^ flip);
}

/* `flip`: 0 for the greatest, -1 for the least. */
static inline void nn_extreme(const nn_reduce_geometry *g, const int8_t *in_data, int8_t *out_data,
                              int32_t flip) {
    const nn_element *in = (const nn_element *)(const void *)in_data;
    nn_element *out = (nn_element *)(void *)out_data;
    const int32_t last = g->outer_rank - 1;
    const int32_t lines = g->outer_stride[last] == 1 && g->outer[last] > 1;
    const int32_t count = lines ? g->outer[last] : 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        if (lines) {
            nn_extreme_line(g, in + offset, out, count, flip);
        } else {
            *out = nn_extreme_of(g, in + offset, flip);
        }
        out += count;
    } while (nn_next(g->outer_rank - lines, g->outer, index, g->outer_stride, &offset));
}

#endif
