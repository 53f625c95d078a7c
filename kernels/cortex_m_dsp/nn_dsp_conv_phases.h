/* Phases of a transpose convolution that meet the same inputs (see nn_phases.h): these are widened
 * once for all of them. */
#ifndef NN_DSP_CONV_PHASES_H
#define NN_DSP_CONV_PHASES_H

#include "nn_dsp_matmul.h"
#include "nn_phases.h"

/* Every stride_h-th row of the window from its first on: the outputs that have taps. That row has
 * some, and the phases of a row have equally many columns of them. */
void nn_dsp_conv_phases(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch);

#endif
