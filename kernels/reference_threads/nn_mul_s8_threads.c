/* Products, rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_mul_s8(call->constants, call->in, call->in2, call->out, &own->window);
}

void nn_mul_s8_threads(const void *constants, const nn_view *in1, const nn_view *in2,
                       const nn_view *out, const nn_window *window) {
    const nn_call call = {.body = piece,
                          .constants = constants,
                          .in = in1,
                          .in2 = in2,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .pixelwise = 1,
                          .issues = 30 * out->channels};
    nn_split(&call, window);
}
