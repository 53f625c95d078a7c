/* A tile of two pixels: see nn_dsp_tile.h. */
#ifndef NN_DSP_TILE2_H
#define NN_DSP_TILE2_H

#include "nn_dsp_tile.h"

#if NN_DSP

/* The outputs of a pair. */
#define NN_DSP_TILE2_OUTPUTS                                                                       \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "ldrd r6, r7, [sp, #8]\n"                                                                      \
    "sub r10, r10, r8\n"                                                                           \
    "add r8, r2, r8, lsl #1\n"                                                                     \
    "sub r11, r11, r9\n"                                                                           \
    "add r9, r2, r9, lsl #1\n"                                                                     \
    "add r0, r4, r8, asr #31\n"                                                                    \
    "smmlar r8, r8, r3, r0\n"                                                                      \
    "add r0, r4, r9, asr #31\n"                                                                    \
    "asr.w r8, r8, r5\n"                                                                           \
    "ssat r8, #8, r8\n"                                                                            \
    "smmlar r9, r9, r3, r0\n"                                                                      \
    "asr.w r9, r9, r5\n"                                                                           \
    "ssat r9, #8, r9\n"                                                                            \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r10, r2, r10, asr #7\n"                                                                   \
    "strb r9, [r6, r7]\n"                                                                          \
    "add r11, r2, r11, asr #7\n"                                                                   \
    "add r0, r4, r10, asr #31\n"                                                                   \
    "smmlar r10, r10, r3, r0\n"                                                                    \
    "add r0, r4, r11, asr #31\n"                                                                   \
    "smmlar r11, r11, r3, r0\n"                                                                    \
    "asr.w r10, r10, r5\n"                                                                         \
    "strb r8, [r6]\n"                                                                              \
    "add r6, r6, #1\n"                                                                             \
    "asr.w r11, r11, r5\n"                                                                         \
    "ssat r10, #8, r10\n"                                                                          \
    "ssat r11, #8, r11\n"                                                                          \
    "strb r10, [r6]\n"                                                                             \
    "strb r11, [r6, r7]\n"

#if NN_DSP_TILE_PAIRED
/* A quad, and the last one of a round. */
#define NN_DSP_TILE2_QUAD                                                                          \
    "smlad r10, r2, r5, r10\n"                                                                     \
    "sxtb16 r4, r2\n"                                                                              \
    "smlad r11, r2, r6, r11\n"                                                                     \
    "ldr.w r3, [r1, #4 + nn_quad * 8]\n"                                                           \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "ldr.w r7, [r0, #8 + nn_quad * 16]\n"                                                          \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "ldr.w r12, [r0, #12 + nn_quad * 16]\n"                                                        \
    "smlad r10, r3, r7, r10\n"                                                                     \
    "sxtb16 r4, r3\n"                                                                              \
    "smlad r11, r3, r12, r11\n"                                                                    \
    "ldr.w r2, [r1, #8 + nn_quad * 8]\n"                                                           \
    "smlad r8, r4, r7, r8\n"                                                                       \
    "ldr.w r5, [r0, #16 + nn_quad * 16]\n"                                                         \
    "smlad r9, r4, r12, r9\n"                                                                      \
    "ldr.w r6, [r0, #20 + nn_quad * 16]\n"
#define NN_DSP_TILE2_LAST                                                                          \
    "smlad r10, r2, r5, r10\n"                                                                     \
    "sxtb16 r4, r2\n"                                                                              \
    "smlad r11, r2, r6, r11\n"                                                                     \
    "ldr.w r3, [r1, #4 + nn_quad * 8]\n"                                                           \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "ldr.w r7, [r0, #8 + nn_quad * 16]\n"                                                          \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "ldr.w r12, [r0, #12 + nn_quad * 16]\n"                                                        \
    "smlad r10, r3, r7, r10\n"                                                                     \
    "sxtb16 r4, r3\n"                                                                              \
    "smlad r11, r3, r12, r11\n"                                                                    \
    "smlad r8, r4, r7, r8\n"                                                                       \
    "smlad r9, r4, r12, r9\n"
#endif

/* Sums: r8 and r9 of the even channel, r10 and r11 of both; inputs r5 to r7 and r12. A quad: 12
 * instructions; of the paired loop 16, which take 8 cycles; a pair's outputs: 30, and 21 cycles on
 * a Cortex-M7. */
__attribute__((naked, noinline)) static void nn_dsp_tile2(NN_DSP_TILE_ARGUMENTS) {
#if NN_DSP_TILE_PAIRED
    __asm volatile(NN_DSP_TILE_PAIRED_ENTER("add r7, r0, r7, lsl #4\n", "64", "3")
                       NN_DSP_TILE_PAIRED_ROUND(NN_DSP_TILE2_QUAD, NN_DSP_TILE2_LAST)
                           NN_DSP_TILE_PAIRED_ROUND_END("16 * " NN_DSP_TILE_UNROLLED)
                               NN_DSP_TILE2_OUTPUTS NN_DSP_TILE_PAIRED_NEXT(
                                   "r8, r9, r10, r11", "sub r0, r0, r4, lsl #1\n"));
#else
    __asm volatile(NN_DSP_TILE_ENTER("add r7, r0, r7, lsl #4\n", "48") /* */
                   NN_DSP_TILE_LOOP                                    /* a quad */
                   "ldrd r2, r3, [r1], #8\n"
                   "ldmia.w r0!, {r5, r6, r7, r12}\n"
                   "sxtb16 r4, r2\n"
                   "smlad r10, r2, r5, r10\n"
                   "smlad r8, r4, r5, r8\n"
                   "smlad r9, r4, r6, r9\n"
                   "sxtb16 r4, r3\n"
                   "smlad r11, r2, r6, r11\n"
                   "smlad r11, r3, r12, r11\n"
                   "smlad r10, r3, r7, r10\n"
                   "smlad r8, r4, r7, r8\n"
                   "smlad r9, r4, r12, r9\n" NN_DSP_TILE_LOOP_END NN_DSP_TILE2_OUTPUTS
                       NN_DSP_TILE_NEXT("r8, r9, r10, r11"));
#endif
}

#endif
#endif
