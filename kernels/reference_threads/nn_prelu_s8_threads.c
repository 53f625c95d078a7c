/* PRELU, rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_prelu_s8(call->constants, call->in, call->in2, call->out, &own->window);
}

void nn_prelu_s8_threads(const void *constants, const nn_view *in, const nn_view *alpha,
                         const nn_view *out, const nn_window *window) {
    const nn_call call = {.body = piece,
                          .constants = constants,
                          .in = in,
                          .in2 = alpha,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .pixelwise = 1,
                          .issues = 35 * out->channels};
    nn_split(&call, window);
}
