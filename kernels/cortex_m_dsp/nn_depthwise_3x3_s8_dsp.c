/* DEPTHWISE_CONV_2D with a kernel of 3 x 3: see nn_dsp_depthwise.h. */
#include "nn_dsp_depthwise.h"

#if NN_DSP
NN_DSP_ASSEMBLY static void compute(__attribute__((unused)) const nn_dsp_run *run) {
    __asm volatile(NN_DSP_RUN_BEGIN NN_DSP_FIRST_TWO_ROWS NN_DSP_LAST_ROW NN_DSP_TWO_ROWS
                       NN_DSP_LAST_ROW NN_DSP_TWO_ROWS NN_DSP_LAST_ROW NN_DSP_RUN_END);
}

/* Two rows and the last one together.
 *
 *   r0, r1       where to; the first row
 *   r2           place; then the column's first word
 *   r3           step
 *   r4 to r10    bytes of the rows, their halves, then the column's words
 *   r11, r12     bytes from the first row to the others
 *   lr           columns left
 *
 * Extensions of one row stand between the packings of the others, and the counter where a
 * Cortex-M7 has room beside a packing. */
NN_DSP_ASSEMBLY static void fill(__attribute__((unused)) uint32_t *to,
                                 __attribute__((unused)) const int8_t *const rows[],
                                 __attribute__((unused)) int32_t place,
                                 __attribute__((unused)) int32_t step,
                                 __attribute__((unused)) int32_t count) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
                   "ldr lr, [sp, #36]\n"
                   "ldmia.w r1, {r1, r11, r12}\n"
                   "sub r11, r11, r1\n"
                   "sub r12, r12, r1\n"
                   "add r1, r1, r2\n"
                   "1: ldr r6, [r1, r11]\n"
                   "ldr r9, [r1, r12]\n"
                   "sxtb16 r8, r6, ror #8\n"
                   "ldr r4, [r1]\n"
                   "sxtb16 r6, r6\n"
                   "add r1, r1, r3\n"
                   "sxtb16 r5, r4, ror #8\n"
                   "sxtb16 r4, r4\n"
                   "pkhbt r2, r4, r6, lsl #16\n"
                   "sxtb16 r10, r9, ror #8\n"
                   "pkhtb r6, r6, r4, asr #16\n"
                   "pkhbt r4, r5, r8, lsl #16\n"
                   "subs lr, lr, #1\n"
                   "sxtb16 r9, r9\n"
                   "pkhtb r8, r8, r5, asr #16\n"
                   "stmia.w r0!, {r2, r4, r6, r8, r9, r10}\n"
                   "bne 1b\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}
#else
static void compute(const nn_dsp_run *run) {
    nn_dsp_compute_run(run, 3);
}

#define fill NULL
#endif

static const nn_dsp_depthwise_kind kind = {3, 24, compute, fill};

int32_t nn_depthwise_3x3_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    return nn_dsp_depthwise_bytes(&kind, geometry->stride_w, out->width);
}

void nn_depthwise_3x3_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    nn_dsp_depthwise_rows(&kind, geometry, constants, in, out, window, scratch);
}
