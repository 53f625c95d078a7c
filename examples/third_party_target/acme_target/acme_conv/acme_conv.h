/* Acme's kernels. */
#ifndef ACME_CONV_H
#define ACME_CONV_H

#include "nn.h"

/* CONV_2D of one group. constants: nn_conv_constants, nn_channel of each output channel, then
 * (16-byte aligned) the weights, H W I O. Scratch: a sum of each output channel. */
void acme_conv2d_s8(const nn_view *in, const nn_view *out, const nn_window *window,
                    const nn_conv_geometry *geometry, const void *constants, void *scratch);

#endif
