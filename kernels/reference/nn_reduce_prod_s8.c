/* REDUCE_PROD over any axes. */
#include "nn_arith.h"

/* Modulo 2^32, as LiteRT's accumulator is. */
static int32_t scaled(int64_t product, const nn_product_constants *c) {
    return (int32_t)((product * c->multiplier + ((int64_t)1 << (c->shift - 1))) >> c->shift);
}

/* One output; its factors are taken in the order in which they lie. */
static int32_t product_inner(const nn_reduce_geometry *g, const nn_product_constants *c,
                             const int8_t *in) {
    int32_t index[NN_MAX_RANK] = {0}, offset = 0, product = *in - c->input_zero_point;
    while (nn_next(g->inner_rank, g->inner, index, g->inner_stride, &offset)) {
        product = scaled((int64_t)product * (in[offset] - c->input_zero_point), c);
    }
    return scaled(product, c);
}

void nn_reduce_prod_s8(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                       int8_t *out) {
    const nn_product_constants *c = (const nn_product_constants *)constants;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    do {
        const int32_t product = product_inner(geometry, c, in + offset);
        *out++ = (int8_t)nn_clamp(nn_wrapping_add(product, c->output_zero_point), -128, 127);
    } while (
        nn_next(geometry->outer_rank, geometry->outer, index, geometry->outer_stride, &offset));
}
