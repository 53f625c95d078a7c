/* DEPTHWISE_CONV_2D with kernels of eight or nine columns. */
#define NN_TILE_REACH 19
#include "nn_riscv.h"
#include "nn_riscv_depthwise.h"

NN_RISCV_DEPTHWISE(nn_depthwise_w9_s8_riscv, 9)
