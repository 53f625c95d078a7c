/* AVERAGE_POOL_2D by CMSIS-NN's arm_avgpool_s8. */
#include "nn_cmsis_nn.h"

int32_t nn_avg_pool_s8_cmsis_nn_scratch_bytes(const nn_pool_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)geometry, (void)out;
    return NN_CMSIS_NN_MVE ? 0 : 4 * in->channels;
}

void nn_avg_pool_s8_cmsis_nn(const nn_pool_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch) {
    const nn_cmsis_nn_pooling p = nn_cmsis_nn_open_pool(geometry, constants, in, out);
    const cmsis_nn_context context =
        nn_cmsis_nn_scratch(scratch, nn_avg_pool_s8_cmsis_nn_scratch_bytes(geometry, in, out),
                            arm_avgpool_s8_get_buffer_size(out->width, in->channels));
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(
        arm_avgpool_s8(&context, &p.params, &p.input, in->data, &p.filter, &p.output, out->data));
}
