/* Depthwise convolution, its rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_depthwise_conv2d_s8((const nn_conv_geometry *)call->geometry, call->constants, call->in,
                           call->out, &own->window, own->scratch);
}

void nn_depthwise_conv2d_s8_threads(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_call call = {.body = piece,
                          .geometry = geometry,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .scratch = scratch,
                          .kernel_h = (g->kernel_h - 1) * g->dilation_h + 1,
                          .stride_h = g->stride_h,
                          .pad_top = g->pad_top,
                          .issues = out->channels * (50 + 5 * g->kernel_h * g->kernel_w)};
    nn_split(&call, window);
}
