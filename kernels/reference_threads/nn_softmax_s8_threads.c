/* Softmax over the channels, rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_softmax_s8(call->constants, call->in, call->out, &own->window);
}

void nn_softmax_s8_threads(const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window) {
    const nn_call call = {.body = piece,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .pixelwise = 1,
                          .issues = 41 * out->channels};
    nn_split(&call, window);
}
