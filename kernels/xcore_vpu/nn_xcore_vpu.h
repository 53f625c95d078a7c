/* Kernels for the vector unit of XMOS's xcore.ai (XS3).
 *
 * They compute what their namesakes in nn.h compute, to the bit; convolutions and dense layers from
 * constants of their own packing (packing.py). Which shapes each serves is in the catalogue.
 */
#ifndef NN_XCORE_VPU_H
#define NN_XCORE_VPU_H

#include "nn.h"

/* One group, any kernel size. Scratch: the taps of a pixel, in blocks of 32 bytes; none for 1 x 1
 * without padding. `constants` may be those of a slice of the output channels, from channel
 * `channel` on as many as `out` has: whole pairs of groups, or up to 16 channels of a pair, with
 * the records of the pair and their own rows of weights. */
void nn_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch, int32_t channel);

/* The same of several groups; see nn_groups.h. */
void nn_grouped_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                              const nn_view *in, const nn_view *out, const nn_window *window,
                              void *scratch);

/* The same by a single thread, with the scratch of one. */
void nn_conv2d_alone_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch, int32_t channel);

/* Any kernel size; depth multiplier 1. */
void nn_depthwise_conv2d_s8_vpu(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch);

/* `channel`: as of a convolution. */
void nn_fully_connected_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch, int32_t channel);
void nn_add_s8_vpu(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);

void nn_avg_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8_vpu(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_mean_s8_vpu(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out);
void nn_lut_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window);

#endif
