/* DEPTHWISE_CONV_2D with a kernel of 7 x 7: see nn_dsp_depthwise.h. */
#include "nn_dsp_depthwise.h"

#if NN_DSP
NN_DSP_ASSEMBLY static void compute(__attribute__((unused)) const nn_dsp_run *run) {
    __asm volatile(NN_DSP_RUN_BEGIN NN_DSP_ZERO_SUMS
                   ".rept 7\n" NN_DSP_TWO_ROWS NN_DSP_TWO_ROWS NN_DSP_TWO_ROWS NN_DSP_LAST_ROW
                   ".endr\n" NN_DSP_RUN_END);
}
#else
static void compute(const nn_dsp_run *run) {
    nn_dsp_compute_run(run, 7);
}
#endif

static const nn_dsp_depthwise_kind kind = {7, 12, compute, NULL};

int32_t nn_depthwise_7x7_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)in;
    return nn_dsp_depthwise_bytes(&kind, geometry->stride_w, out->width);
}

void nn_depthwise_7x7_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    nn_dsp_depthwise_rows(&kind, geometry, constants, in, out, window, scratch);
}
