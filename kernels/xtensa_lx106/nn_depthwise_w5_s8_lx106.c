/* DEPTHWISE_CONV_2D with kernels of five columns at most, of any height. */
#include "nn_lx106_depthwise.h"
#include "nn_xtensa.h"

NN_LX106_DEPTHWISE(nn_depthwise_w5_s8_lx106, 5)
