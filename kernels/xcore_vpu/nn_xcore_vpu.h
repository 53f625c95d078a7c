/* Kernels for the vector unit of XMOS's xcore.ai (XS3).
 *
 * They compute what their namesakes in nn.h compute, to the bit; convolutions and dense layers from
 * constants of their own packing (packing.py). Which shapes each serves is in the catalogue.
 */
#ifndef NN_XCORE_VPU_H
#define NN_XCORE_VPU_H

#include "nn.h"

void nn_add_s8_vpu(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);

void nn_avg_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_max_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window);
void nn_mean_s8_vpu(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out);
void nn_lut_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window);

#endif
