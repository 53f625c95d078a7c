/* DEPTHWISE_CONV_2D on int16 of fewer than 512 taps: sums fit 32 bits. */
#include <stdint.h>

typedef int32_t nn_wide_sum;

#include "nn_riscv.h"
#include "nn_wide_depthwise.h"

void nn_depthwise_conv2d_s16_riscv(const nn_conv_geometry *geometry, const void *constants,
                                   const nn_view *in, const nn_view *out, const nn_window *window,
                                   void *scratch) {
    (void)scratch;
    nn_wide_depthwise(geometry, constants, in, out, window);
}
