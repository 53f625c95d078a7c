/* SOFTMAX by CMSIS-NN's arm_softmax_s8. */
#include "nn_cmsis_nn.h"

void nn_softmax_s8_cmsis_nn(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window) {
    const nn_cmsis_nn_softmax *c = (const nn_cmsis_nn_softmax *)constants;
    nn_cmsis_nn_require_whole(in, out, window);
    arm_softmax_s8(in->data, in->height * in->width, in->channels, c->multiplier, c->shift,
                   c->least, nn_out_data(out));
}
