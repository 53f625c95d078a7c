/* A tile of one pixel: see nn_dsp_tile.h. */
#ifndef NN_DSP_TILE1_H
#define NN_DSP_TILE1_H

#include "nn_dsp_tile.h"

#if NN_DSP

/* Sums: r8 of the even channel, r9 of both; inputs r5 and r6. A quad: 8 instructions, 6 cycles on
 * a Cortex-M7; a pair's outputs: 17, and 14. */
__attribute__((naked, noinline)) static void nn_dsp_tile1(NN_DSP_TILE_ARGUMENTS) {
    __asm volatile(NN_DSP_TILE_ENTER("add r7, r0, r7, lsl #3\n", "32") /* */
                   NN_DSP_TILE_LOOP                                    /* a quad */
                   "ldrd r2, r3, [r1], #8\n"
                   "ldrd r5, r6, [r0], #8\n"
                   "sxtb16 r4, r2\n"
                   "smlad r9, r2, r5, r9\n"
                   "smlad r8, r4, r5, r8\n"
                   "sxtb16 r4, r3\n"
                   "smlad r9, r3, r6, r9\n"
                   "smlad r8, r4, r6, r8\n" NN_DSP_TILE_LOOP_END /* outputs */
                   "ldmia r1!, {r2, r3, r4, r5}\n"
                   "sub r9, r9, r8\n"
                   "add r8, r2, r8, lsl #1\n"
                   "add r0, r4, r8, asr #31\n"
                   "smmlar r8, r8, r3, r0\n"
                   "asr.w r8, r8, r5\n"
                   "ldmia r1!, {r2, r3, r4, r5}\n"
                   "add r9, r2, r9, asr #7\n"
                   "ldr r6, [sp, #8]\n"
                   "ssat r8, #8, r8\n"
                   "add r0, r4, r9, asr #31\n"
                   "smmlar r9, r9, r3, r0\n"
                   "strb r8, [r6]\n"
                   "add r6, r6, #1\n"
                   "asr.w r9, r9, r5\n"
                   "ssat r9, #8, r9\n"
                   "strb r9, [r6]\n" NN_DSP_TILE_NEXT("r8, r9"));
}

#endif
#endif
