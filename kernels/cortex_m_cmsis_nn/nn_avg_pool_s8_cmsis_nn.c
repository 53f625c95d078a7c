/* AVERAGE_POOL_2D by CMSIS-NN's arm_avgpool_s8. */
#include "nn_cmsis_nn.h"

int32_t nn_avg_pool_s8_cmsis_nn_scratch_bytes(const nn_pool_geometry *geometry, const nn_view *in,
                                              const nn_view *out) {
    (void)geometry;
    return nn_cmsis_nn_avg_pool_bytes(nn_cmsis_nn_shape_of(in), nn_cmsis_nn_shape_of(out));
}

void nn_avg_pool_s8_cmsis_nn(const nn_pool_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch, int32_t scratch_bytes) {
    const nn_cmsis_nn_pooling p = nn_cmsis_nn_open_pool(geometry, constants, in, out);
    const cmsis_nn_context context = nn_cmsis_nn_scratch(
        scratch, scratch_bytes, nn_avg_pool_s8_cmsis_nn_scratch_bytes(geometry, in, out));
    nn_cmsis_nn_require_whole(in, out, window);
    nn_cmsis_nn_succeeded(arm_avgpool_s8(&context, &p.params, &p.input, in->data, &p.filter,
                                         &p.output, nn_out_data(out)));
}
