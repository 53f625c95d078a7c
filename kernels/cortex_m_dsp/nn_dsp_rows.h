/* Four rows of weights times one vector, with the DSP extension: see nn_rows.h, whose names the
 * last functions have. Recurrent layers use a vector for the rows of all their cells.
 *
 * A vector is ready when it is widened to 16 bits. Weights are packed in fours of rows that are
 * filled up with zeros: for every four inputs the two words (see nn_dsp_matmul.h) of the first two
 * rows, then of the others. `general`: whether one of them overflows there.
 */
#ifndef NN_DSP_ROWS_H
#define NN_DSP_ROWS_H

#include "nn_dsp_matmul.h"

#define NN_DSP_PIECE 127 /* quads: 508 products of -128 and -128 stay below 2^23 */

#if NN_DSP

/* Sums of rows 0 and 2; of rows 1 and 3 times 256, plus those of their neighbours.
 *
 *   r0, r1       inputs, weights; read forward
 *   r2 to r5     a quad's weights: of the first two rows, then of the others
 *   r6, r7       its inputs, (k0, k2) and (k1, k3)
 *   r8           weights of row 0 or 2 alone
 *   r9 to r12    sums of the four rows
 *   lr           the inputs' end; stack: where the sums go
 *
 * Eight quads are unrolled; the loop is entered so that its last round is whole. An extension
 * stands beside the product of other words, two cycles before its own: 10 cycles on a Cortex-M7 for
 * 14 instructions. */
__attribute__((naked, noinline)) static void
nn_dsp_sum_four(__attribute__((unused)) const uint32_t *x,
                __attribute__((unused)) const uint32_t *w, __attribute__((unused)) int32_t quads,
                __attribute__((unused)) int32_t *sums) {
    __asm volatile("push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
                   "add lr, r0, r2, lsl #3\n"
                   "ands r2, r2, #7\n"
                   "it eq\n"
                   "moveq r2, #8\n"
                   "mov r3, #56\n" /* bytes of a quad */
                   "adr.w r4, 2f\n"
                   "mls r4, r2, r3, r4\n"
                   "orr r4, r4, #1\n"
                   "mov r9, #0\n"
                   "mov r10, #0\n"
                   "mov r11, #0\n"
                   "mov r12, #0\n"
                   "bx r4\n"
                   ".p2align 2\n"
                   "1: .rept 8\n"
                   "ldrd r6, r7, [r0], #8\n"
                   "ldmia.w r1!, {r2, r3, r4, r5}\n"
                   "sxtb16 r8, r2\n"
                   "smlad r10, r2, r6, r10\n"
                   "smlad r9, r8, r6, r9\n"
                   "sxtb16 r8, r4\n"
                   "smlad r10, r3, r7, r10\n"
                   "smlad r11, r8, r6, r11\n"
                   "sxtb16 r8, r3\n"
                   "smlad r12, r4, r6, r12\n"
                   "smlad r9, r8, r7, r9\n"
                   "sxtb16 r8, r5\n"
                   "smlad r12, r5, r7, r12\n"
                   "smlad r11, r8, r7, r11\n"
                   ".endr\n"
                   "2: cmp r0, lr\n"
                   "bne.w 1b\n"
                   "pop {r3}\n"
                   "stmia.w r3, {r9, r10, r11, r12}\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}

#else

static void nn_dsp_sum_four(const uint32_t *x, const uint32_t *w, int32_t quads, int32_t *sums) {
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = 0;
    }
    for (int32_t i = 0; i < quads; i++, x += 2, w += 4) {
        for (int32_t k = 0; k < 2; k++) {
            sums[0] = nn_smlad(nn_sxtb16(w[k]), x[k], sums[0]);
            sums[1] = nn_smlad(w[k], x[k], sums[1]);
            sums[2] = nn_smlad(nn_sxtb16(w[2 + k]), x[k], sums[2]);
            sums[3] = nn_smlad(w[2 + k], x[k], sums[3]);
        }
    }
}

#endif

/* All four sums by themselves, in exact arithmetic. */
NN_OUTLINE void nn_dsp_sum_general(const uint32_t *x, const uint32_t *w, int32_t quads,
                                   int32_t *sums) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (; quads > 0; quads--, w += 4) {
        for (int32_t k = 0; k < 2; k++) {
            const uint32_t inputs = *x++, first = w[k], second = w[2 + k];
            const uint32_t low1 = nn_sxtb16(first), low2 = nn_sxtb16(second);
            s0 = nn_smlad(low1, inputs, s0);
            s1 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(first, low1)), inputs, s1);
            s2 = nn_smlad(low2, inputs, s2);
            s3 = nn_smlad(nn_sxtb16_ror8(nn_ssub16(second, low2)), inputs, s3);
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The same, unless a weight overflows: in pieces, so that 256 times a sum fits int32. */
static inline void nn_dsp_sum_pieces(const uint32_t *x, const uint32_t *w, int32_t quads,
                                     int32_t *sums) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, run;
    for (; quads > 0; quads -= run, x += 2 * run, w += 4 * run) {
        run = nn_min(quads, NN_DSP_PIECE);
        nn_dsp_sum_four(x, w, run, sums);
        s0 += sums[0];
        s1 += (int32_t)((uint32_t)sums[1] - (uint32_t)sums[0]) >> 8;
        s2 += sums[2];
        s3 += (int32_t)((uint32_t)sums[3] - (uint32_t)sums[2]) >> 8;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

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
