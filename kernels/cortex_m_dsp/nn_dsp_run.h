/* A run of outputs of four channels of a depthwise convolution, from columns in scratch. */
#ifndef NN_DSP_RUN_H
#define NN_DSP_RUN_H

#include "nn_dsp_columns.h"

/* A run of outputs of one block; the assembly knows the order. */
typedef struct {
    const uint32_t *x, *taps; /* columns in scratch; widened weights */
    const nn_dsp_channel *channels;
    int8_t *out, *end;
    int32_t advance; /* bytes from the end of one output's columns to the next one's */
    int32_t step;    /* bytes from output to output */
} nn_dsp_run;

/* Computes one output's sums from its columns. */
static inline void nn_dsp_sum_columns(int32_t sums[NN_DSP_BLOCK], const uint32_t *x,
                                      const uint32_t *w, int32_t size) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t column = 0; column < size; column++) {
        for (int32_t row = 1; row < size; row += 2, x += 4, w += 4) {
            s0 = nn_smlad(x[0], w[0], s0);
            s1 = nn_smlad(x[1], w[1], s1);
            s2 = nn_smlad(x[2], w[2], s2);
            s3 = nn_smlad(x[3], w[3], s3);
        }
        if (size % 2 != 0) {
            s0 = nn_smlabb(x[0], w[0], s0);
            s1 = nn_smlabb(x[1], w[1], s1);
            s2 = nn_smlatt(x[0], w[0], s2);
            s3 = nn_smlatt(x[1], w[1], s3);
            x += 2;
            w += 2;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* Four outputs of general channels, clamped. */
NN_OUTLINE void nn_dsp_put_general(int8_t *out, const int32_t sums[NN_DSP_BLOCK],
                                   const nn_dsp_channel *channels,
                                   const nn_conv_constants *common) {
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        out[i] = nn_dsp_general_output(sums[i], channels + i, common);
    }
}

/* A run whose channels are general; clamped. */
NN_OUTLINE void nn_dsp_general_run(const nn_dsp_run *run, int32_t size,
                                   const nn_conv_constants *common) {
    const int32_t words = nn_dsp_column_words(size) * size + run->advance / 4;
    const uint32_t *x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step, x += words) {
        int32_t sums[NN_DSP_BLOCK];
        nn_dsp_sum_columns(sums, x, run->taps, size);
        nn_dsp_put_general(out, sums, run->channels, common);
    }
}

#if NN_DSP

/* The loop over the outputs of a run.
 *
 *   r0           columns, read forward; the next output's begin `advance` bytes behind them
 *   r1           weights, read forward; then channels
 *   r2 to r5     two rows of a column, or in r2 and r3 its last row
 *   r6 to r9     their weights
 *   r10 to lr    sums of the four channels
 *   stack        the nn_dsp_run
 *
 * Two loads of several words stand before the four products of their words. A Cortex-M7 issues such
 * a load alone and one product a cycle, so no other order is faster: 12 cycles for three rows of a
 * column. */
#define NN_DSP_RUN_BEGIN                                                                           \
    "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                \
    "ldmia r0, {r0, r1, r2, r3, r4, r5, r6}\n"                                                     \
    "push {r0, r1, r2, r3, r4, r5, r6}\n"                                                          \
    "1: ldr r1, [sp, #4]\n"
#define NN_DSP_ZERO_SUMS "mov r10, #0\n mov r11, #0\n mov r12, #0\n mov lr, #0\n"
#define NN_DSP_FIRST_TWO_ROWS                                                                      \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                \
    "ldmia r1!, {r6, r7, r8, r9}\n"                                                                \
    "smuad r10, r2, r6\n"                                                                          \
    "smuad r11, r3, r7\n"                                                                          \
    "smuad r12, r4, r8\n"                                                                          \
    "smuad lr, r5, r9\n"
#define NN_DSP_TWO_ROWS                                                                            \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                \
    "ldmia r1!, {r6, r7, r8, r9}\n"                                                                \
    "smlad r10, r2, r6, r10\n"                                                                     \
    "smlad r11, r3, r7, r11\n"                                                                     \
    "smlad r12, r4, r8, r12\n"                                                                     \
    "smlad lr, r5, r9, lr\n"
#define NN_DSP_LAST_ROW                                                                            \
    "ldrd r2, r3, [r0], #8\n"                                                                      \
    "ldrd r6, r7, [r1], #8\n"                                                                      \
    "smlabb r10, r2, r6, r10\n"                                                                    \
    "smlabb r11, r3, r7, r11\n"                                                                    \
    "smlatt r12, r2, r6, r12\n"                                                                    \
    "smlatt lr, r3, r7, lr\n"
/* Four outputs in place of their sums, see nn_dsp_channel: with t = bias + 2 * sum and step =
 * offset
 * + (t >> 31) an output is (round(t * multiplier / 2^32) + step) >> shift, saturated.
 *
 *   r2 to r5     a channel; at the end r2 to r4: what leads to the next output, where they end
 *   r6, r7       steps of the even and the odd channels
 *   r9           the output
 *   r10 to lr    sum, t, output of a channel each
 *
 * A channel is loaded as soon as the shift of the one before has been used. What is left to do for
 * that one, saturation and store, fills the cycles in which the next one's steps wait for each
 * other: a Cortex-M7 takes 31 cycles for these 35 instructions. */
#define NN_DSP_RUN_END                                                                             \
    "ldrd r1, r9, [sp, #8]\n"                                                                      \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r10, r2, r10, lsl #1\n"                                                                   \
    "add r6, r4, r10, asr #31\n"                                                                   \
    "smmlar r10, r10, r3, r6\n"                                                                    \
    "asr.w r10, r10, r5\n"                                                                         \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r11, r2, r11, lsl #1\n"                                                                   \
    "add r7, r4, r11, asr #31\n"                                                                   \
    "smmlar r11, r11, r3, r7\n"                                                                    \
    "asr.w r11, r11, r5\n"                                                                         \
    "ssat r11, #8, r11\n"                                                                          \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r12, r2, r12, lsl #1\n"                                                                   \
    "strb r11, [r9, #1]\n"                                                                         \
    "ssat r10, #8, r10\n"                                                                          \
    "add r6, r4, r12, asr #31\n"                                                                   \
    "smmlar r12, r12, r3, r6\n"                                                                    \
    "asr.w r12, r12, r5\n"                                                                         \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add lr, r2, lr, lsl #1\n"                                                                     \
    "ssat r12, #8, r12\n"                                                                          \
    "strb r10, [r9, #0]\n"                                                                         \
    "add r7, r4, lr, asr #31\n"                                                                    \
    "smmlar lr, lr, r3, r7\n"                                                                      \
    "ldrd r2, r3, [sp, #20]\n"                                                                     \
    "ldr r4, [sp, #16]\n"                                                                          \
    "asr.w lr, lr, r5\n"                                                                           \
    "ssat lr, #8, lr\n"                                                                            \
    "strb r12, [r9, #2]\n"                                                                         \
    "strb lr, [r9, #3]\n"                                                                          \
    "add r0, r0, r2\n"                                                                             \
    "add r9, r9, r3\n"                                                                             \
    "cmp r9, r4\n"                                                                                 \
    "str r9, [sp, #12]\n"                                                                          \
    "bne.w 1b\n"                                                                                   \
    "add sp, #28\n"                                                                                \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

#else

/* The same arithmetic, step by step. */
static inline void nn_dsp_compute_run(const nn_dsp_run *run, int32_t size) {
    const int32_t words = nn_dsp_column_words(size) * size + run->advance / 4;
    const uint32_t *x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step, x += words) {
        int32_t sums[NN_DSP_BLOCK];
        nn_dsp_sum_columns(sums, x, run->taps, size);
        for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
            out[i] = (int8_t)nn_dsp_output(sums[i], run->channels + i);
        }
    }
}

#endif

#endif
