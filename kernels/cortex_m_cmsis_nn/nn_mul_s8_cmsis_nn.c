/* MUL of two tensors of one shape by CMSIS-NN's arm_elementwise_mul_s8; the plain kernel
 * broadcasts. Constants: nn_mul_constants. */
#include "nn_cmsis_nn.h"

void nn_mul_s8_cmsis_nn(const void *constants, const nn_view *in1, const nn_view *in2,
                        const nn_view *out, const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    if (!nn_cmsis_nn_same(in1, out) || !nn_cmsis_nn_same(in2, out)) {
        nn_mul_s8(constants, in1, in2, out, window);
        return;
    }
    nn_cmsis_nn_require_whole(out, out, window);
    nn_cmsis_nn_succeeded(arm_elementwise_mul_s8(
        in1->data, in2->data, -c->input1_zero_point, -c->input2_zero_point, nn_out_data(out),
        c->output_zero_point, c->output_multiplier, c->output_shift, c->clamp_min, c->clamp_max,
        out->height * out->row_stride));
}
