/* ADD and SUB by one line: sixteen elements at a time; nn_add_s8_mve.c says when. */
#ifndef NN_MVE_ADD_H
#define NN_MVE_ADD_H

#include "nn_mve.h"

typedef struct {
    nn_add_constants general;
    int32_t linear; /* 1: what follows holds */
    int32_t factor1, factor2, offset;
} nn_add_mve_constants;

typedef struct {
    int32_t factor1, factor2, offset;
    int32_t low, high;
} nn_mve_line;

/* Four sums. */
static inline int32x4_t nn_mve_line_sum(int32x4_t a, int32x4_t b, int32x4_t factor1,
                                        const nn_mve_line *l, int single) {
    a = vqrdmlashq_n_s32(a, factor1, l->offset);
    return single ? a : vqrdmlahq_n_s32(a, b, l->factor2);
}

/* Eight sums as int16, in units of 2^-6; elements are in the upper bytes of a and b. (Not by
 * VQSHRN: binutils 2.40 assembles it as VQRSHRN.) */
static inline int16x8_t nn_mve_line_eight(int16x8_t a, int16x8_t b, int32x4_t factor1,
                                          const nn_mve_line *l, int single) {
    const int32x4_t even =
        nn_mve_line_sum(vshllbq_n_s16(a, 16), vshllbq_n_s16(b, 16), factor1, l, single);
    const int32x4_t odd =
        nn_mve_line_sum(vshlltq_n_s16(a, 16), vshlltq_n_s16(b, 16), factor1, l, single);
    return vshrntq_n_s32(vshrnbq_n_s32(vreinterpretq_s16_s32(even), even, 16), odd, 16);
}

static inline int8x16_t nn_mve_line_sixteen(int8x16_t a, int8x16_t b, int32x4_t factor1,
                                            const nn_mve_line *l, int single, int clamped) {
    const int16x8_t even =
        nn_mve_line_eight(vshllbq_n_s8(a, 8), vshllbq_n_s8(b, 8), factor1, l, single);
    const int16x8_t odd =
        nn_mve_line_eight(vshlltq_n_s8(a, 8), vshlltq_n_s8(b, 8), factor1, l, single);
    int8x16_t result = vqrshrnbq_n_s16(vreinterpretq_s8_s16(even), even, 6);
    result = vqrshrntq_n_s16(result, odd, 6);
    if (clamped) {
        result = vmaxq_s8(result, vdupq_n_s8((int8_t)l->low));
        result = vminq_s8(result, vdupq_n_s8((int8_t)l->high));
    }
    return result;
}

#endif
