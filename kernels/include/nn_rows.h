/* A few rows of weights times one vector, in plain C: what nn_lstm.h and nn_svdf.h are made of.
 *
 * Families with better instructions have a header of their own that defines the same names:
 *   nn_rows_vector    what a vector consists of when it is ready to be multiplied
 *   nn_rows_room      bytes of scratch for a vector of so many elements
 *   nn_rows_ready     makes it ready, in that room if need be
 *   nn_rows_matrix    bytes of so many packed rows; four rows are next to one another
 *   nn_rows_times     sums[i] = sum of x[k] * weights[i][k], of `rows` (1 to 4) rows from `weights`
 *     on; `general`: what the packing says of the matrices (see there)
 *   nn_rows_over_time moves a feature's memory on by one step; returns sum + its products, modulo
 *     2^32
 * The first four are in nn_rows_bytes.h for those whose vectors stay bytes.
 */
#ifndef NN_ROWS_H
#define NN_ROWS_H

#include "nn_dot.h"
#include "nn_rows_bytes.h"

static inline void nn_rows_four(int32_t sums[4], const int8_t *x, const int8_t *w, int32_t count) {
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    nn_dot4(sums, x, w, count, count);
}

static inline int32_t nn_rows_one(const int8_t *x, const int8_t *w, int32_t count) {
    return nn_dot(x, w, count);
}

static inline uint32_t nn_rows_over_time(int16_t *memory, const int16_t *weights, int32_t steps,
                                         int32_t newest, uint32_t sum) {
    for (int32_t t = 0; t < steps - 1; t++) {
        memory[t] = memory[t + 1];
        sum += (uint32_t)(memory[t] * weights[t]);
    }
    memory[steps - 1] = (int16_t)newest;
    return sum + (uint32_t)(newest * weights[steps - 1]);
}

#endif
