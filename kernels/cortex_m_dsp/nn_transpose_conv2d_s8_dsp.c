/* TRANSPOSE_CONV: each phase of its outputs as a convolution. */
#include "nn_cortex_m_dsp.h"
#include "nn_phases.h"

int32_t nn_transpose_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    return nn_phases_scratch(geometry, in, out, nn_conv2d_s8_dsp_scratch_bytes);
}

void nn_transpose_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    nn_phases_walk_of(out->channels, geometry, constants, in, out, window, scratch,
                      nn_conv2d_s8_dsp);
}
