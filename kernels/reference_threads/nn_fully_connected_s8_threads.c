/* A dense layer that is applied to several vectors, which are shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_fully_connected_s8(call->constants, call->in, call->out, &own->window, own->scratch);
}

void nn_fully_connected_s8_threads(const void *constants, const nn_view *in, const nn_view *out,
                                   const nn_window *window, void *scratch) {
    const nn_call call = {.body = piece,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .scratch = scratch,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .issues = out->channels * (72 + 3 * in->channels)};
    nn_split(&call, window);
}
