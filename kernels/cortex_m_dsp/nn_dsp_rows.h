/* A few rows of weights times one vector, with the DSP extension: see nn_rows.h, whose names these
 * are.
 *
 * A vector is ready when it is widened to 16 bits; weights are packed as nn_dsp_dense.h says, in
 * fours of rows that are filled up with zeros. `general`: whether one of them overflows there.
 */
#ifndef NN_DSP_ROWS_H
#define NN_DSP_ROWS_H

#include "nn_dsp_dense.h"

typedef uint32_t nn_rows_vector;

static inline int32_t nn_rows_room(int32_t count) {
    return 8 * ((count + 3) / 4);
}

static inline const nn_rows_vector *nn_rows_ready(void *room, const int8_t *x, int32_t count) {
    (void)nn_dsp_widen1((uint32_t *)room, 1, x, count);
    return (const nn_rows_vector *)room;
}

static inline int32_t nn_rows_matrix(int32_t rows, int32_t count) {
    return (rows + 3) / 4 * 4 * ((count + 3) / 4 * 4);
}

static inline void nn_rows_times(int32_t sums[4], const nn_rows_vector *x, const int8_t *weights,
                                 int32_t rows, int32_t count, int32_t general) {
    const uint32_t *words = (const uint32_t *)(const void *)weights;
    const int32_t quads = (count + 3) / 4;
    (void)rows;
    if (general) {
        nn_dsp_sum_general(x, words, quads, sums);
    } else {
        nn_dsp_sum_pieces(x, words, quads, sums);
    }
}

/* Two steps at a time; a step's successor may lie at an odd halfword. */
static inline uint32_t nn_rows_over_time(int16_t *memory, const int16_t *weights, int32_t steps,
                                         int32_t newest, uint32_t sum) {
    int32_t left = steps - 1, total = (int32_t)sum;
    for (; left >= 2; left -= 2, memory += 2, weights += 2) {
        const uint32_t kept = nn_load4(memory + 1);
        nn_store4((int8_t *)memory, kept);
        total = nn_smlad(kept, nn_load4(weights), total);
    }
    if (left > 0) {
        memory[0] = memory[1];
        total = nn_wrapping_add(total, memory[0] * weights[0]);
        memory++;
        weights++;
    }
    memory[0] = (int16_t)newest;
    return (uint32_t)total + (uint32_t)(newest * weights[0]);
}

#endif
