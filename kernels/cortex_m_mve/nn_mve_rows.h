/* A few rows of weights times one vector, with Helium: see nn_rows.h, whose names these are.
 *
 * The weights are packed as the plain kernels': a vector of 16 inputs meets those of four rows, the
 * last one with the lanes that there are. Memory moves on by one step in ascending order, eight
 * steps at a time.
 */
#ifndef NN_MVE_ROWS_H
#define NN_MVE_ROWS_H

#include "nn_mve.h"
#include "nn_rows_bytes.h"

static NN_NOINLINE __attribute__((unused)) void nn_rows_four(int32_t sums[4], const int8_t *x,
                                                             const int8_t *w, int32_t count) {
    const int8_t *w1 = w + count, *w2 = w1 + count, *w3 = w2 + count;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (; count > 0; count -= 16, x += 16, w += 16, w1 += 16, w2 += 16, w3 += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        const int8x16_t inputs = vldrbq_z_s8(x, lanes);
        s0 = vmladavaq_p_s8(s0, inputs, vldrbq_z_s8(w, lanes), lanes);
        s1 = vmladavaq_p_s8(s1, inputs, vldrbq_z_s8(w1, lanes), lanes);
        s2 = vmladavaq_p_s8(s2, inputs, vldrbq_z_s8(w2, lanes), lanes);
        s3 = vmladavaq_p_s8(s3, inputs, vldrbq_z_s8(w3, lanes), lanes);
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static NN_NOINLINE __attribute__((unused)) int32_t nn_rows_one(const int8_t *x, const int8_t *w,
                                                               int32_t count) {
    int32_t sum = 0;
    for (; count > 0; count -= 16, x += 16, w += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        sum = vmladavaq_p_s8(sum, vldrbq_z_s8(x, lanes), vldrbq_z_s8(w, lanes), lanes);
    }
    return sum;
}

static inline uint32_t nn_rows_over_time(int16_t *memory, const int16_t *weights, int32_t steps,
                                         int32_t newest, uint32_t sum) {
    int32_t left = steps - 1, total = (int32_t)sum;
    for (; left > 0; left -= 8, memory += 8, weights += 8) {
        const mve_pred16_t lanes = vctp16q((uint32_t)left);
        const int16x8_t kept = vldrhq_z_s16(memory + 1, lanes);
        vstrhq_p_s16(memory, kept, lanes);
        total = vmladavaq_p_s16(total, kept, vldrhq_z_s16(weights, lanes), lanes);
    }
    memory[left] = (int16_t)newest;
    return (uint32_t)total + (uint32_t)(newest * weights[left]);
}

#endif
