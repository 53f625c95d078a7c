/* BATCH_MATMUL: the walk over matrices, their rows, and their columns, four at a time. The file
 * that includes it says what an nn_element is. */
#ifndef NN_MATMUL_H
#define NN_MATMUL_H

#include "nn_arith.h"

#define NN_MATMUL_COLUMNS 4

/* Computes `count` columns of one row; `x` and `y` are where its operands begin. */
typedef void nn_matmul_block(const nn_matmul_geometry *g, const void *constants,
                             const nn_element *x, const nn_element *y, nn_element *out,
                             int32_t count);

static inline __attribute__((always_inline)) nn_element *
nn_matmul_product(const nn_matmul_geometry *g, const void *constants, const nn_element *x,
                  const nn_element *y, nn_element *out, nn_matmul_block *block) {
    for (int32_t row = 0; row < g->rows; row++, x += g->x_row, out += g->columns) {
        int32_t n = 0;
        for (; n + NN_MATMUL_COLUMNS <= g->columns; n += NN_MATMUL_COLUMNS) {
            block(g, constants, x, y + n * g->y_column, out + n, NN_MATMUL_COLUMNS);
        }
        for (; n < g->columns; n++) {
            block(g, constants, x, y + n * g->y_column, out + n, 1);
        }
    }
    return out;
}

static inline __attribute__((always_inline)) void
nn_matmul(const nn_matmul_geometry *g, const void *constants, const nn_view *in1,
          const nn_view *in2, const nn_view *out, nn_matmul_block *block) {
    int32_t index[NN_MAX_RANK] = {0};
    const nn_element *x = (const nn_element *)(const void *)in1->data;
    const nn_element *y = (const nn_element *)(const void *)in2->data;
    nn_element *to = (nn_element *)(void *)nn_out_data(out);
    for (;;) {
        int32_t d = g->rank - 1;
        to = nn_matmul_product(g, constants, x, y, to, block);
        for (; d >= 0; d--) {
            x += g->x_stride[d];
            y += g->y_stride[d];
            if (++index[d] < g->size[d]) {
                break;
            }
            x -= g->size[d] * g->x_stride[d];
            y -= g->size[d] * g->y_stride[d];
            index[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

#endif
