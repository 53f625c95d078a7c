/* A tile of three pixels: see nn_dsp_tile.h. */
#ifndef NN_DSP_TILE3_H
#define NN_DSP_TILE3_H

#include "nn_dsp_tile.h"

#if NN_DSP

/* The outputs of a pair. */
#define NN_DSP_TILE3_OUTPUTS                                                                       \
    "sub r12, r12, r9\n"                                                                           \
    "sub lr, lr, r10\n"                                                                            \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "sub r11, r11, r8\n"                                                                           \
    "add r8, r2, r8, lsl #1\n"                                                                     \
    "ldrd r6, r7, [sp, #8]\n"                                                                      \
    "add r0, r4, r8, asr #31\n"                                                                    \
    "smmlar r8, r8, r3, r0\n"                                                                      \
    "add r9, r2, r9, lsl #1\n"                                                                     \
    "asr.w r8, r8, r5\n"                                                                           \
    "ssat r8, #8, r8\n"                                                                            \
    "add r10, r2, r10, lsl #1\n"                                                                   \
    "strb r8, [r6]\n"                                                                              \
    "add r0, r4, r9, asr #31\n"                                                                    \
    "smmlar r9, r9, r3, r0\n"                                                                      \
    "add r0, r4, r10, asr #31\n"                                                                   \
    "smmlar r10, r10, r3, r0\n"                                                                    \
    "asr.w r9, r9, r5\n"                                                                           \
    "asr.w r10, r10, r5\n"                                                                         \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r11, r2, r11, asr #7\n"                                                                   \
    "ssat r9, #8, r9\n"                                                                            \
    "ssat r10, #8, r10\n"                                                                          \
    "strb r9, [r6, r7]\n"                                                                          \
    "strb r10, [r6, r7, lsl #1]\n"                                                                 \
    "add r0, r4, r11, asr #31\n"                                                                   \
    "smmlar r11, r11, r3, r0\n"                                                                    \
    "add r6, r6, #1\n"                                                                             \
    "add r12, r2, r12, asr #7\n"                                                                   \
    "asr.w r11, r11, r5\n"                                                                         \
    "ssat r11, #8, r11\n"                                                                          \
    "add r0, r4, r12, asr #31\n"                                                                   \
    "smmlar r12, r12, r3, r0\n"                                                                    \
    "add lr, r2, lr, asr #7\n"                                                                     \
    "asr.w r12, r12, r5\n"                                                                         \
    "add r0, r4, lr, asr #31\n"                                                                    \
    "smmlar lr, lr, r3, r0\n"                                                                      \
    "ssat r12, #8, r12\n"                                                                          \
    "strb r11, [r6]\n"                                                                             \
    "asr.w lr, lr, r5\n"                                                                           \
    "ssat lr, #8, lr\n"                                                                            \
    "strb r12, [r6, r7]\n"                                                                         \
    "strb lr, [r6, r7, lsl #1]\n"

#if NN_DSP_TILE_PAIRED
/* A quad, and the last one of a round. */
#define NN_DSP_TILE3_QUAD                                                                          \
    "smlad r11, r2, r5, r11\n"                                                                     \
    "ldr.w r7, [r0, #8 + nn_quad * 24]\n"                                                          \
    "smlad r12, r2, r6, r12\n"                                                                     \
    "sxtb16 r4, r2\n"                                                                              \
    "smlad lr, r2, r7, lr\n"                                                                       \
    "ldr.w r3, [r1, #4 + nn_quad * 8]\n"                                                           \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "ldr.w r5, [r0, #12 + nn_quad * 24]\n"                                                         \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "ldr.w r6, [r0, #16 + nn_quad * 24]\n"                                                         \
    "smlad r10, r4, r7, r10\n"                                                                     \
    "ldr.w r7, [r0, #20 + nn_quad * 24]\n"                                                         \
    "smlad r11, r3, r5, r11\n"                                                                     \
    "sxtb16 r4, r3\n"                                                                              \
    "smlad r12, r3, r6, r12\n"                                                                     \
    "ldr.w r2, [r1, #8 + nn_quad * 8]\n"                                                           \
    "smlad lr, r3, r7, lr\n"                                                                       \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "ldr.w r5, [r0, #24 + nn_quad * 24]\n"                                                         \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "ldr.w r6, [r0, #28 + nn_quad * 24]\n"                                                         \
    "smlad r10, r4, r7, r10\n"
#define NN_DSP_TILE3_LAST                                                                          \
    "smlad r11, r2, r5, r11\n"                                                                     \
    "ldr.w r7, [r0, #8 + nn_quad * 24]\n"                                                          \
    "smlad r12, r2, r6, r12\n"                                                                     \
    "sxtb16 r4, r2\n"                                                                              \
    "smlad lr, r2, r7, lr\n"                                                                       \
    "ldr.w r3, [r1, #4 + nn_quad * 8]\n"                                                           \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "ldr.w r5, [r0, #12 + nn_quad * 24]\n"                                                         \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "ldr.w r6, [r0, #16 + nn_quad * 24]\n"                                                         \
    "smlad r10, r4, r7, r10\n"                                                                     \
    "ldr.w r7, [r0, #20 + nn_quad * 24]\n"                                                         \
    "smlad r11, r3, r5, r11\n"                                                                     \
    "sxtb16 r4, r3\n"                                                                              \
    "smlad r12, r3, r6, r12\n"                                                                     \
    "smlad lr, r3, r7, lr\n"                                                                       \
    "smlad r8, r4, r5, r8\n"                                                                       \
    "smlad r9, r4, r6, r9\n"                                                                       \
    "smlad r10, r4, r7, r10\n"
#endif

/* Sums: r8 to r10 of the even channel, r11, r12 and lr of both; inputs r5 to r7. A quad: 17
 * instructions; of the paired loop 22, which take 12 cycles; a pair's outputs: 43, and 30 cycles on
 * a Cortex-M7. */
__attribute__((naked, noinline)) static void nn_dsp_tile3(NN_DSP_TILE_ARGUMENTS) {
#if NN_DSP_TILE_PAIRED
    __asm volatile(
        NN_DSP_TILE_PAIRED_ENTER("add r7, r7, r7, lsl #1\n add r7, r0, r7, lsl #3\n", "88", "3")
            NN_DSP_TILE_PAIRED_ROUND(NN_DSP_TILE3_QUAD, NN_DSP_TILE3_LAST)
                NN_DSP_TILE_PAIRED_ROUND_END("24 * " NN_DSP_TILE_UNROLLED)
                    NN_DSP_TILE3_OUTPUTS NN_DSP_TILE_PAIRED_NEXT(
                        "r8, r9, r10, r11, r12, lr", "sub r0, r0, r4\n sub r0, r0, r4, lsl #1\n"));
#else
    __asm volatile(
        NN_DSP_TILE_ENTER("add r7, r7, r7, lsl #1\n add r7, r0, r7, lsl #3\n", "68") /* */
        NN_DSP_TILE_LOOP                                                             /* a quad */
        "ldrd r2, r3, [r1], #8\n"
        "ldmia.w r0!, {r5, r6, r7}\n"
        "smlad r11, r2, r5, r11\n"
        "sxtb16 r4, r2\n"
        "smlad r12, r2, r6, r12\n"
        "smlad r8, r4, r5, r8\n"
        "smlad r9, r4, r6, r9\n"
        "smlad r10, r4, r7, r10\n"
        "smlad lr, r2, r7, lr\n"
        "ldmia.w r0!, {r5, r6, r7}\n"
        "smlad r11, r3, r5, r11\n"
        "sxtb16 r4, r3\n"
        "smlad r12, r3, r6, r12\n"
        "smlad r8, r4, r5, r8\n"
        "smlad r9, r4, r6, r9\n"
        "smlad r10, r4, r7, r10\n"
        "smlad lr, r3, r7, lr\n" NN_DSP_TILE_LOOP_END NN_DSP_TILE3_OUTPUTS NN_DSP_TILE_NEXT(
            "r8, r9, r10, r11, r12, lr"));
#endif
}

#endif
#endif
