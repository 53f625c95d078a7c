/* Resizing (nearest), its rows or columns shared. */
#include "nn_reference_threads.h"
#include "nn_split.h"

static void piece(const nn_call *call, const nn_piece *own) {
    nn_resize_nearest_s8((const nn_resize_geometry *)call->geometry, call->in, call->out,
                         &own->window);
}

void nn_resize_nearest_s8_threads(const nn_resize_geometry *geometry, const nn_view *in,
                                  const nn_view *out, const nn_window *window) {
    const nn_call call = {.body = piece,
                          .geometry = geometry,
                          .in = in,
                          .out = out,
                          .kernel_h = in->height,
                          .issues = 60 + 4 * out->channels};
    nn_split(&call, window);
}
