/* Inputs of a few pixels as int16, interleaved: see nn_dsp_matmul.h. */
#include "nn_dsp_matmul.h"

#if NN_DSP

#define ARGUMENTS                                                                                  \
    __attribute__((unused)) uint32_t *x, __attribute__((unused)) const int8_t *from,               \
        __attribute__((unused)) int32_t step, __attribute__((unused)) int32_t quads

/* r0: where to, r1, r2 and r12: the pixels' inputs, r3: quads left, r4 to r6: (k0, k2) of the
 * pixels, r7 to r9: their quads, then (k1, k3). All loads stand before the first extension, so none
 * is waited for; a core that issues two instructions at a time gains nothing from another order,
 * as it makes one extension a cycle. */
__attribute__((naked, noinline)) static void widen3(ARGUMENTS) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9}\n"
                   "add r12, r1, r2, lsl #1\n"
                   "add r2, r1, r2\n"
                   "1: ldr r7, [r1], #4\n"
                   "ldr r8, [r2], #4\n"
                   "ldr r9, [r12], #4\n"
                   "sxtb16 r4, r7\n"
                   "sxtb16 r5, r8\n"
                   "sxtb16 r6, r9\n"
                   "sxtb16 r7, r7, ror #8\n"
                   "sxtb16 r8, r8, ror #8\n"
                   "sxtb16 r9, r9, ror #8\n"
                   "subs r3, r3, #1\n"
                   "stmia.w r0!, {r4, r5, r6, r7, r8, r9}\n"
                   "bne 1b\n"
                   "pop {r4, r5, r6, r7, r8, r9}\n"
                   "bx lr\n");
}

/* The same of two pixels: quads in r6 and r7. */
__attribute__((naked, noinline)) static void widen2(ARGUMENTS) {
    __asm volatile("push {r4, r5, r6, r7}\n"
                   "add r2, r1, r2\n"
                   "1: ldr r6, [r1], #4\n"
                   "ldr r7, [r2], #4\n"
                   "sxtb16 r4, r6\n"
                   "sxtb16 r5, r7\n"
                   "sxtb16 r6, r6, ror #8\n"
                   "sxtb16 r7, r7, ror #8\n"
                   "subs r3, r3, #1\n"
                   "stmia.w r0!, {r4, r5, r6, r7}\n"
                   "bne 1b\n"
                   "pop {r4, r5, r6, r7}\n"
                   "bx lr\n");
}

void nn_dsp_widen_quads(uint32_t *x, int32_t pixels, const int8_t *from, int32_t step,
                        int32_t quads) {
    if (pixels == 3) {
        widen3(x, from, step, quads);
    } else if (pixels == 2) {
        widen2(x, from, step, quads);
    } else {
        (void)nn_dsp_widen1(x, 1, from, 4 * quads);
    }
}

#else

void nn_dsp_widen_quads(uint32_t *x, int32_t pixels, const int8_t *from, int32_t step,
                        int32_t quads) {
    for (int32_t p = 0; p < pixels; p++, from += step) {
        (void)nn_dsp_widen1(x + p, pixels, from, 4 * quads);
    }
}

#endif
