/* Kernels that requantise by the 16-bit multipliers of XS3's vector unit; see nn_vpu16.h. */
#ifndef NN_XCORE_VPU16_H
#define NN_XCORE_VPU16_H

#include "nn.h"

void nn_conv2d_s8_vpu16(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch);
/* Without padding. */
void nn_conv2d_1x1_s8_vpu16(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch);
void nn_depthwise_conv2d_s8_vpu16(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch);
void nn_fully_connected_s8_vpu16(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch);

#endif
