/* Kernels for the vector unit of XMOS's xcore.ai (XS3).
 *
 * They compute what their namesakes in nn.h compute, to the bit; convolutions and dense layers from
 * constants of their own packing (packing.py). Which shapes each serves is in the catalogue.
 */
#ifndef NN_XCORE_VPU_H
#define NN_XCORE_VPU_H

#include "nn.h"

#endif
