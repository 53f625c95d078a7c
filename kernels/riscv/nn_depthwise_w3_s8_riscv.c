/* DEPTHWISE_CONV_2D with kernels of three columns at most, of any height. */
#include "nn_riscv.h"
#include "nn_riscv_depthwise.h"

NN_RISCV_DEPTHWISE(nn_depthwise_w3_s8_riscv, 3)
