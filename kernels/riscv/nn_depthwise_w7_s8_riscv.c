/* DEPTHWISE_CONV_2D with kernels of six or seven columns. */
#include "nn_riscv.h"
#include "nn_riscv_depthwise.h"

NN_RISCV_DEPTHWISE(nn_depthwise_w7_s8_riscv, 7)
