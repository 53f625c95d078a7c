/* DEPTHWISE_CONV_2D with kernels of five columns at most, of any height. */
#include "nn_mul32.h"
#include "nn_mul32_depthwise.h"

NN_MUL32_DEPTHWISE(nn_depthwise_w5_s8_mul32, 5)
