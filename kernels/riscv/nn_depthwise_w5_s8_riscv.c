/* DEPTHWISE_CONV_2D with kernels of four or five columns. */
#include "nn_riscv.h"
#include "nn_riscv_depthwise.h"

NN_RISCV_DEPTHWISE(nn_depthwise_w5_s8_riscv, 5)
