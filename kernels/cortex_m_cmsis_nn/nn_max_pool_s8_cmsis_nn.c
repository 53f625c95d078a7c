/* MAX_POOL_2D by CMSIS-NN's arm_max_pool_s8. */
#include "nn_cmsis_nn.h"

void nn_max_pool_s8_cmsis_nn(const nn_pool_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_cmsis_nn_pooling p = nn_cmsis_nn_open_pool(geometry, constants, in, out);
    const cmsis_nn_context context = {.buf = NULL, .size = 0};
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(arm_max_pool_s8(&context, &p.params, &p.input, in->data, &p.filter,
                                          &p.output, nn_out_data(out)));
}
