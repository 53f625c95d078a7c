/* A few rows of weights times one vector, where vectors and rows stay the bytes that they are: what
 * nn_rows.h and headers like it share.
 *
 * Whoever includes this defines the sums of four rows that are next to one another, and of one row:
 *   nn_rows_four    sums[i] = sum of x[k] * w[i * count + k], i = 0 to 3
 *   nn_rows_one     the sum of x[k] * w[k]
 */
#ifndef NN_ROWS_BYTES_H
#define NN_ROWS_BYTES_H

#include "nn_arith.h"

typedef int8_t nn_rows_vector;

static inline int32_t nn_rows_room(int32_t count) {
    (void)count;
    return 0;
}

static inline const nn_rows_vector *nn_rows_ready(void *room, const int8_t *x, int32_t count) {
    (void)room;
    (void)count;
    return x;
}

static inline int32_t nn_rows_matrix(int32_t rows, int32_t count) {
    return rows * count;
}

static void nn_rows_four(int32_t sums[4], const int8_t *x, const int8_t *w, int32_t count);
static int32_t nn_rows_one(const int8_t *x, const int8_t *w, int32_t count);

static inline void nn_rows_times(int32_t sums[4], const nn_rows_vector *x, const int8_t *weights,
                                 int32_t rows, int32_t count, int32_t general) {
    (void)general;
    if (rows == 4) {
        nn_rows_four(sums, x, weights, count);
        return;
    }
    for (int32_t i = 0; i < rows; i++) {
        sums[i] = nn_rows_one(x, weights + i * count, count);
    }
}

#endif
