/* REDUCE_PROD over any axes. The file that includes it says what an nn_element is. */
#ifndef NN_PRODUCT_H
#define NN_PRODUCT_H

#include "nn_arith.h"

/* Modulo 2^32, as LiteRT's accumulator is. */
static int32_t nn_scaled_product(int64_t product, const nn_product_constants *c) {
    return (int32_t)((product * c->multiplier + ((int64_t)1 << (c->shift - 1))) >> c->shift);
}

/* One output; its factors are taken in the order in which they lie. */
static int32_t nn_product_of(const nn_reduce_geometry *g, const nn_product_constants *c,
                             const nn_element *in) {
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, product = *in - c->input_zero_point;
    while (nn_next(g->inner_rank, g->inner, index, g->inner_stride, &offset)) {
        product = nn_scaled_product((int64_t)product * (in[offset] - c->input_zero_point), c);
    }
    return nn_scaled_product(product, c);
}

static inline void nn_product(const nn_reduce_geometry *g, const void *constants,
                              const int8_t *in_data, int8_t *out_data, int32_t least) {
    const nn_product_constants *c = (const nn_product_constants *)constants;
    const nn_element *in = (const nn_element *)(const void *)in_data;
    nn_element *out = (nn_element *)(void *)out_data;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        const int32_t product = nn_product_of(g, c, in + offset);
        const int32_t moved = nn_wrapping_add(product, c->output_zero_point);
        *out++ = (nn_element)nn_clamp(moved, least, -1 - least);
    } while (nn_next(g->outer_rank, g->outer, index, g->outer_stride, &offset));
}

#endif
