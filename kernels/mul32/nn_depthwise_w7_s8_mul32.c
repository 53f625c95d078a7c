/* DEPTHWISE_CONV_2D with kernels of seven columns at most, of any height. */
#include "nn_mul32.h"
#include "nn_mul32_depthwise.h"

NN_MUL32_DEPTHWISE(nn_depthwise_w7_s8_mul32, 7)
