/* Operators on int16 that compute each output element from the elements at its place. */
#ifndef NN_DSP_PIXELWISE_S16_H
#define NN_DSP_PIXELWISE_S16_H

#include "nn_dsp_pixelwise.h"

/* A view whose channels are the bytes of the elements. */
static inline nn_view nn_dsp_bytes_of(const nn_view *view) {
    nn_view bytes = *view;
    bytes.channels *= 2;
    return bytes;
}

/* nn_dsp_for_runs, with bytes instead of elements counted. */
static inline void nn_dsp_for_wide_runs(nn_dsp_run_of_two *compute, const void *plan,
                                        const nn_view *in1, const nn_view *in2, const nn_view *out,
                                        const nn_window *window) {
    const nn_view a = nn_dsp_bytes_of(in1), b = nn_dsp_bytes_of(in2), to = nn_dsp_bytes_of(out);
    nn_dsp_for_runs(compute, plan, &a, &b, &to, window);
}

static inline int32_t nn_ssat16(int32_t a) {
#if NN_DSP
    int32_t result;
    __asm("ssat %0, #16, %1" : "=r"(result) : "r"(a));
    return result;
#else
    return nn_clamp(a, -32768, 32767);
#endif
}

#endif
