/* CMSIS-NN's dense layer as one call of ten words, for counting: version 6 of the library or later.
 *
 * The sums of the weights are part of a layer's constants, which its user makes once: `library.py`
 * counts them alone as well, and subtracts.
 */
#include "arm_nnfunctions.h"

int32_t library_dense_sums(int32_t *sums, const int8_t *in, const int8_t *weights,
                           const int32_t *bias, int8_t *out, int32_t inputs, int32_t outputs,
                           int32_t input_offset, int32_t multiplier, int32_t shift) {
    (void)in, (void)out, (void)multiplier, (void)shift;
    return arm_vector_sum_s8(sums, inputs, outputs, weights, input_offset, 0, bias);
}

int32_t library_dense(int32_t *sums, const int8_t *in, const int8_t *weights, const int32_t *bias,
                      int8_t *out, int32_t inputs, int32_t outputs, int32_t input_offset,
                      int32_t multiplier, int32_t shift) {
    const cmsis_nn_context context = {.buf = sums, .size = 4 * outputs};
    const cmsis_nn_fc_params params = {
        .input_offset = input_offset, .output_offset = -5, .activation = {.min = -128, .max = 127}};
    const cmsis_nn_per_tensor_quant_params factors = {.multiplier = multiplier, .shift = shift};
    const cmsis_nn_dims input = {1, 1, 1, inputs}, filter = {inputs, 1, 1, outputs};
    const cmsis_nn_dims bias_dims = {1, 1, 1, outputs}, output = {1, 1, 1, outputs};
    (void)library_dense_sums(sums, in, weights, bias, out, inputs, outputs, input_offset, 0, 0);
    return arm_fully_connected_s8(&context, &params, &factors, &input, in, &filter, weights,
                                  &bias_dims, bias, &output, out);
}
