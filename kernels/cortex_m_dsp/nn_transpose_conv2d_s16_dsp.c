/* TRANSPOSE_CONV on int16: each phase of its outputs as a convolution. */
#include "nn_cortex_m_dsp.h"
#include "nn_phases.h"

void nn_transpose_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch) {
    nn_phases_walk_of(2 * out->channels, 0, geometry, constants, in, out, window, scratch,
                      nn_conv2d_s16_dsp);
}
