/* What the taps of a depthwise convolution meet, brought into scratch.
 *
 * Of every column of input that a run of outputs needs: of rows 0 and 1 the words (row 0, row 1) of
 * each of four channels, so for every two rows; of a last odd row the words (channel 0, channel 2)
 * and (channel 1, channel 3). Padding is in there as well. The weights of a block are widened to
 * words of the same order, column by column of taps.
 */
#ifndef NN_DSP_COLUMNS_H
#define NN_DSP_COLUMNS_H

#include "nn_dsp.h"

#define NN_DSP_MAX_ROWS 7 /* of the kernel */

#if NN_DSP
#define NN_DSP_ASSEMBLY __attribute__((naked, noinline))
#endif

/* Words of a column. */
static inline int32_t nn_dsp_column_words(int32_t rows) {
    return 4 * (rows / 2) + 2 * (rows % 2);
}

/* Words of four channels of two rows, or of the last one. */
static inline void nn_dsp_put_two(uint32_t *x, uint32_t a, uint32_t b) {
    const uint32_t a02 = nn_sxtb16(a), a13 = nn_sxtb16_ror8(a);
    const uint32_t b02 = nn_sxtb16(b), b13 = nn_sxtb16_ror8(b);
    x[0] = nn_pkhbt(a02, b02);
    x[1] = nn_pkhbt(a13, b13);
    x[2] = nn_pkhtb(b02, a02);
    x[3] = nn_pkhtb(b13, a13);
}

static inline void nn_dsp_put_last(uint32_t *x, uint32_t a) {
    x[0] = nn_sxtb16(a);
    x[1] = nn_sxtb16_ror8(a);
}

/* `count` columns of two rows; `a`: the first one's, `apart`: bytes to the second one's, `ahead`:
 * bytes from a column's words to the next one's.
 *
 *   r0 to r3     x, a, apart, step
 *   r4 to r8     bytes of the rows, their halves, then the column's words in r4, r5, r7, r8
 *   r12, lr      columns left, ahead
 *
 * The counter and the address are stepped between the packings: a Cortex-M7 issues one of these a
 * cycle, and an addition beside it. */
#if NN_DSP
NN_DSP_ASSEMBLY __attribute__((unused)) static void
nn_dsp_fill_two(__attribute__((unused)) uint32_t *x, __attribute__((unused)) const int8_t *a,
                __attribute__((unused)) ptrdiff_t apart, __attribute__((unused)) int32_t step,
                __attribute__((unused)) int32_t count, __attribute__((unused)) int32_t ahead) {
    __asm volatile("push {r4, r5, r6, r7, r8, lr}\n"
                   "ldrd r12, lr, [sp, #24]\n" /* count, ahead */
                   "1: ldr r5, [r1]\n"
                   "ldr r7, [r1, r2]\n"
                   "add r1, r1, r3\n"
                   "sxtb16 r6, r5, ror #8\n"
                   "sxtb16 r8, r7, ror #8\n"
                   "sxtb16 r7, r7\n"
                   "sxtb16 r5, r5\n"
                   "pkhbt r4, r5, r7, lsl #16\n"
                   "pkhtb r7, r7, r5, asr #16\n"
                   "pkhbt r5, r6, r8, lsl #16\n"
                   "subs r12, r12, #1\n"
                   "pkhtb r8, r8, r6, asr #16\n"
                   "stmia.w r0, {r4, r5, r7, r8}\n"
                   "add r0, r0, lr\n"
                   "bne 1b\n"
                   "pop {r4, r5, r6, r7, r8, pc}\n");
}
#else
static inline void nn_dsp_fill_two(uint32_t *x, const int8_t *a, ptrdiff_t apart, int32_t step,
                                   int32_t count, int32_t ahead) {
    for (; count > 0; count--, x += ahead / 4, a += step) {
        nn_dsp_put_two(x, nn_load4(a), nn_load4(a + apart));
    }
}
#endif

/* The same where one of the rows, or both, are padding. */
static inline void nn_dsp_fill_two_padded(uint32_t *x, const int8_t *a, const int8_t *b,
                                          uint32_t padding, int32_t step, int32_t count,
                                          int32_t words) {
    if (a != NULL) {
        for (; count > 0; count--, x += words, a += step) {
            nn_dsp_put_two(x, nn_load4(a), padding);
        }
    } else if (b != NULL) {
        for (; count > 0; count--, x += words, b += step) {
            nn_dsp_put_two(x, padding, nn_load4(b));
        }
    } else {
        for (; count > 0; count--, x += words) {
            nn_dsp_put_two(x, padding, padding);
        }
    }
}

static inline const int8_t *nn_dsp_at(const int8_t *row, int32_t place) {
    return row == NULL ? NULL : row + place;
}

/* Puts `count` columns into scratch, as an nn_dsp_fill; rows may be NULL: padding, four times its
 * value given. */
NN_OUTLINE void nn_dsp_fill_rows(uint32_t *to, const int8_t *const rows[], int32_t place,
                                 int32_t step, int32_t count, int32_t size, uint32_t padding) {
    const int32_t words = nn_dsp_column_words(size);
    int32_t row = 0;
    for (; row + 1 < size; row += 2, to += 4) {
        const int8_t *a = nn_dsp_at(rows[row], place), *b = nn_dsp_at(rows[row + 1], place);
        if (a != NULL && b != NULL) {
            nn_dsp_fill_two(to, a, b - a, step, count, 4 * words);
        } else {
            nn_dsp_fill_two_padded(to, a, b, padding, step, count, words);
        }
    }
    if (row < size) {
        const int8_t *last = nn_dsp_at(rows[row], place);
        for (int32_t i = 0; i < count; i++, to += words) {
            nn_dsp_put_last(to, last == NULL ? padding : nn_load4(last + i * step));
        }
    }
}

/* The weights of a block as words, two of which come from each of `count` words: one more than a
 * multiple of four, as is the square of an odd number. Returns where the weights end. */
#if NN_DSP
NN_DSP_ASSEMBLY __attribute__((unused)) static const int8_t *
nn_dsp_widen_taps(__attribute__((unused)) uint32_t *to,
                  __attribute__((unused)) const int8_t *weights,
                  __attribute__((unused)) int32_t count) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, lr}\n"
                   "1: ldmia.w r1!, {r3, r5, r7, r9}\n"
                   "sxtb16 r4, r3, ror #8\n"
                   "sxtb16 r3, r3\n"
                   "sxtb16 r6, r5, ror #8\n"
                   "sxtb16 r5, r5\n"
                   "sxtb16 r8, r7, ror #8\n"
                   "sxtb16 r7, r7\n"
                   "sxtb16 r10, r9, ror #8\n"
                   "sxtb16 r9, r9\n"
                   "subs r2, #4\n"
                   "stmia.w r0!, {r3, r4, r5, r6, r7, r8, r9, r10}\n"
                   "cmp r2, #1\n"
                   "bne 1b\n"
                   "ldr r3, [r1], #4\n"
                   "sxtb16 r4, r3, ror #8\n"
                   "sxtb16 r3, r3\n"
                   "strd r3, r4, [r0]\n"
                   "mov r0, r1\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, pc}\n");
}
#else
static inline const int8_t *nn_dsp_widen_taps(uint32_t *to, const int8_t *weights, int32_t count) {
    for (; count > 0; count--, weights += 4, to += 2) {
        const uint32_t word = nn_load4(weights);
        to[0] = nn_sxtb16(word);
        to[1] = nn_sxtb16_ror8(word);
    }
    return weights;
}
#endif

#endif
