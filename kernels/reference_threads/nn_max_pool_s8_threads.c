/* Maximum pooling, its rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_max_pool_s8((const nn_pool_geometry *)call->geometry, call->constants, call->in, call->out,
                   &own->window);
}

void nn_max_pool_s8_threads(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_call call = {.body = piece,
                          .geometry = geometry,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = g->kernel_h,
                          .stride_h = g->stride_h,
                          .pad_top = g->pad_top,
                          .issues = out->channels * (25 + 6 * g->kernel_h * g->kernel_w)};
    nn_split(&call, window);
}
