/* Functions of CMSIS-NN (version 6 or later) as calls of a few words, for counting: those that
 * buildtool has no adapter for. For muriscv-nn, which has the same functions, all of them. `words`
 * begins with what the topology fixes; library_calls.py lays it out. All return the library's
 * status.
 */
#include "arm_nnfunctions.h"
#include "nn.h"

#include <string.h>

/* CONV_2D, in groups if the filter has fewer channels than the input. */
typedef struct {
    int32_t height, width, cin, out_height, out_width, cout, kernel_h, kernel_w, filter_channels;
    int32_t pad_h, pad_w, stride, scratch_bytes;
} conv_words;

/* The parts of a layer's constants. */
typedef struct {
    const int32_t *bias;
    cmsis_nn_per_channel_quant_params factors;
    const int8_t *weights;
} layer_parts;

static layer_parts open_layer(const nn_conv_constants *constants, int32_t outputs) {
    layer_parts parts;
    parts.bias = (const int32_t *)(constants + 1);
    parts.factors.multiplier = (int32_t *)parts.bias + outputs;
    parts.factors.shift = parts.factors.multiplier + outputs;
    const uintptr_t end = (uintptr_t)(parts.factors.shift + outputs);
    parts.weights = (const int8_t *)((end + 15) / 16 * 16);
    return parts;
}

int32_t library_conv(const conv_words *c, const nn_conv_constants *constants, const int8_t *in,
                     int8_t *out, void *scratch) {
    const layer_parts layer = open_layer(constants, c->cout);
    const cmsis_nn_conv_params params = {
        .input_offset = -constants->input_zero_point,
        .output_offset = constants->output_zero_point,
        .stride = {.w = c->stride, .h = c->stride},
        .padding = {.w = c->pad_w, .h = c->pad_h},
        .dilation = {.w = 1, .h = 1},
        .activation = {.min = constants->clamp_min, .max = constants->clamp_max}};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims filter = {c->cout, c->kernel_h, c->kernel_w, c->filter_channels};
    const cmsis_nn_dims biases = {1, 1, 1, c->cout};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    if (c->filter_channels == c->cin) {
        if (arm_convolve_wrapper_s8_get_buffer_size(&params, &input, &filter, &output) >
            c->scratch_bytes) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
        return arm_convolve_wrapper_s8(&context, &params, &layer.factors, &input, in, &filter,
                                       layer.weights, &biases, layer.bias, &output, out);
    }
    if (arm_convolve_s8_get_buffer_size(&input, &filter) > c->scratch_bytes) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_convolve_s8(&context, &params, &layer.factors, &input, in, &filter, layer.weights,
                           &biases, layer.bias, NULL, &output, out);
}

/* DEPTHWISE_CONV_2D. */
int32_t library_depthwise(const conv_words *c, const nn_conv_constants *constants, const int8_t *in,
                          int8_t *out, void *scratch) {
    const layer_parts layer = open_layer(constants, c->cout);
    const cmsis_nn_dw_conv_params params = {
        .input_offset = -constants->input_zero_point,
        .output_offset = constants->output_zero_point,
        .ch_mult = c->cout / c->cin,
        .stride = {.w = c->stride, .h = c->stride},
        .padding = {.w = c->pad_w, .h = c->pad_h},
        .dilation = {.w = 1, .h = 1},
        .activation = {.min = constants->clamp_min, .max = constants->clamp_max}};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims filter = {1, c->kernel_h, c->kernel_w, c->cout};
    const cmsis_nn_dims biases = {1, 1, 1, c->cout};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    if (arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &input, &filter, &output) >
        c->scratch_bytes) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_depthwise_conv_wrapper_s8(&context, &params, &layer.factors, &input, in, &filter,
                                         layer.weights, &biases, layer.bias, &output, out);
}

/* Poolings. */
int32_t library_pool(const conv_words *c, const int8_t *in, int8_t *out, void *scratch,
                     int32_t is_average) {
    const cmsis_nn_pool_params params = {.stride = {.w = c->stride, .h = c->stride},
                                         .padding = {.w = c->pad_w, .h = c->pad_h},
                                         .activation = {.min = -128, .max = 127}};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims filter = {1, c->kernel_h, c->kernel_w, 1};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    return is_average ? arm_avgpool_s8(&context, &params, &input, in, &filter, &output, out)
                      : arm_max_pool_s8(&context, &params, &input, in, &filter, &output, out);
}

/* CONCATENATION of two tensors along the channels. */
int32_t library_concat(const int8_t *first, const int8_t *second, int8_t *out, int32_t height,
                       int32_t width, int32_t channels1, int32_t channels2) {
    const uint16_t both = (uint16_t)(channels1 + channels2);
    arm_concatenation_s8_x(first, (uint16_t)channels1, (uint16_t)width, (uint16_t)height, 1, out,
                           both, 0);
    arm_concatenation_s8_x(second, (uint16_t)channels2, (uint16_t)width, (uint16_t)height, 1, out,
                           both, (uint32_t)channels1);
    return ARM_CMSIS_NN_SUCCESS;
}

/* ADD and MUL of a tensor and one that is repeated: a call for each pixel, which is the most that
 * the library's functions of two tensors of one shape can be given. `own`: channels of the repeated
 * one; 1 means an element for each pixel, which is spread to `row` first. */
typedef struct {
    int32_t pixels, channels, own;
} repeated_words;

static const int8_t *repeated(const repeated_words *r, const int8_t *b, int32_t pixel,
                              int8_t *row) {
    if (r->own != 1) {
        return b;
    }
    memset(row, b[pixel], (size_t)r->channels);
    return row;
}

int32_t library_add(const repeated_words *r, const nn_add_constants *c, const int8_t *a,
                    const int8_t *b, int8_t *out, int8_t *row) {
    for (int32_t i = 0; i < r->pixels; i++, a += r->channels, out += r->channels) {
        arm_elementwise_add_s8(a, repeated(r, b, i, row), -c->input1_zero_point,
                               c->input1_multiplier, c->input1_shift, -c->input2_zero_point,
                               c->input2_multiplier, c->input2_shift, c->left_shift, out,
                               c->output_zero_point, c->output_multiplier, c->output_shift,
                               c->clamp_min, c->clamp_max, r->channels);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t library_mul(const repeated_words *r, const nn_mul_constants *c, const int8_t *a,
                    const int8_t *b, int8_t *out, int8_t *row) {
    for (int32_t i = 0; i < r->pixels; i++, a += r->channels, out += r->channels) {
        arm_elementwise_mul_s8(a, repeated(r, b, i, row), -c->input1_zero_point,
                               -c->input2_zero_point, out, c->output_zero_point,
                               c->output_multiplier, c->output_shift, c->clamp_min, c->clamp_max,
                               r->channels);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* SOFTMAX of one row of any length. */
int32_t library_softmax(const int32_t *constants, const int8_t *in, int8_t *out, int32_t classes) {
    arm_softmax_s8(in, 1, classes, constants[0], constants[1], constants[2], out);
    return ARM_CMSIS_NN_SUCCESS;
}

/* FULLY_CONNECTED of one row. The sums of the weights are part of a layer's constants, which its
 * user makes once: they are counted alone as well, and subtracted. */
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

/* TRANSPOSE_CONV. */
int32_t library_transpose(const conv_words *c, const nn_conv_constants *constants, const int8_t *in,
                          int8_t *out, void *scratch, void *reversed) {
    const layer_parts layer = open_layer(constants, c->cout);
    const cmsis_nn_transpose_conv_params params = {
        .input_offset = -constants->input_zero_point,
        .output_offset = constants->output_zero_point,
        .stride = {.w = c->stride, .h = c->stride},
        .padding = {.w = c->pad_w, .h = c->pad_h},
        .dilation = {.w = 1, .h = 1},
        .activation = {.min = constants->clamp_min, .max = constants->clamp_max}};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims filter = {c->cout, c->kernel_h, c->kernel_w, c->cin};
    const cmsis_nn_dims biases = {1, 1, 1, c->cout};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    const cmsis_nn_context reverse = {.buf = reversed, .size = c->scratch_bytes};
    if (arm_transpose_conv_s8_get_buffer_size(&params, &input, &filter, &output) >
        c->scratch_bytes) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_transpose_conv_wrapper_s8(&context, &reverse, &params, &layer.factors, &input, in,
                                         &filter, layer.weights, &biases, layer.bias, &output, out);
}

/* PAD of rows and columns. */
int32_t library_pad(const int8_t *in, int8_t *out, int32_t value, const cmsis_nn_dims *size,
                    const cmsis_nn_dims *before, const cmsis_nn_dims *behind) {
    return arm_pad_s8(in, out, (int8_t)value, size, before, behind);
}

int32_t library_maximum(const int8_t *a, const int8_t *b, int8_t *out, const cmsis_nn_dims *size) {
    const cmsis_nn_context none = {NULL, 0};
    return arm_maximum_s8(&none, a, size, b, size, out, size);
}

/* ---- int16 activations ----------------------------------------------------------------------- */

/* CONV_2D, or DEPTHWISE_CONV_2D if `multiplier` is above 0; zero points are 0. */
typedef struct {
    conv_words shape;
    int32_t multiplier, low, high;
} wide_words;

int32_t library_wide_conv(const wide_words *w, const int32_t *multipliers, const int32_t *shifts,
                          const int64_t *bias, const int8_t *weights, const int16_t *in,
                          int16_t *out, void *scratch) {
    const conv_words *const c = &w->shape;
    const cmsis_nn_per_channel_quant_params factors = {(int32_t *)multipliers, (int32_t *)shifts};
    const cmsis_nn_tile stride = {.w = c->stride, .h = c->stride};
    const cmsis_nn_tile padding = {.w = c->pad_w, .h = c->pad_h}, dilation = {.w = 1, .h = 1};
    const cmsis_nn_activation limits = {.min = w->low, .max = w->high};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims biases = {1, 1, 1, c->cout};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    if (w->multiplier > 0) {
        const cmsis_nn_dw_conv_params params = {.ch_mult = w->multiplier,
                                                .stride = stride,
                                                .padding = padding,
                                                .dilation = dilation,
                                                .activation = limits};
        const cmsis_nn_dims filter = {1, c->kernel_h, c->kernel_w, c->cout};
        if (arm_depthwise_conv_wrapper_s16_get_buffer_size(&params, &input, &filter, &output) >
            c->scratch_bytes) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
        return arm_depthwise_conv_wrapper_s16(&context, &params, &factors, &input, in, &filter,
                                              weights, &biases, bias, &output, out);
    }
    const cmsis_nn_conv_params params = {
        .stride = stride, .padding = padding, .dilation = dilation, .activation = limits};
    const cmsis_nn_dims filter = {c->cout, c->kernel_h, c->kernel_w, c->filter_channels};
    const cmsis_nn_bias_data given = {bias, false};
    if (arm_convolve_wrapper_s16_get_buffer_size(&params, &input, &filter, &output) >
        c->scratch_bytes) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_convolve_wrapper_s16(&context, &params, &factors, &input, in, &filter, weights,
                                    &biases, &given, &output, out);
}

int32_t library_wide_dense(const wide_words *w, const int32_t *factor, const int64_t *bias,
                           const int8_t *weights, const int16_t *in, int16_t *out) {
    const cmsis_nn_context none = {NULL, 0};
    const cmsis_nn_fc_params params = {.activation = {.min = w->low, .max = w->high}};
    const cmsis_nn_per_tensor_quant_params factors = {factor[0], factor[1]};
    const int32_t inputs = w->shape.cin, outputs = w->shape.cout;
    const cmsis_nn_dims input = {1, 1, 1, inputs}, filter = {inputs, 1, 1, outputs};
    const cmsis_nn_dims row = {1, 1, 1, outputs};
    return arm_fully_connected_s16(&none, &params, &factors, &input, in, &filter, weights, &row,
                                   bias, &row, out);
}

/* Poolings; an average if `multiplier` is 1. */
int32_t library_wide_pool(const wide_words *w, const int16_t *in, int16_t *out, void *scratch) {
    const conv_words *const c = &w->shape;
    const cmsis_nn_pool_params params = {.stride = {.w = c->stride, .h = c->stride},
                                         .padding = {.w = c->pad_w, .h = c->pad_h},
                                         .activation = {.min = w->low, .max = w->high}};
    const cmsis_nn_dims input = {1, c->height, c->width, c->cin};
    const cmsis_nn_dims filter = {1, c->kernel_h, c->kernel_w, 1};
    const cmsis_nn_dims output = {1, c->out_height, c->out_width, c->cout};
    const cmsis_nn_context context = {.buf = scratch, .size = c->scratch_bytes};
    return w->multiplier == 1
               ? arm_avgpool_s16(&context, &params, &input, in, &filter, &output, out)
               : arm_max_pool_s16(&context, &params, &input, in, &filter, &output, out);
}

int32_t library_wide_add(const nn_add_constants *c, const int16_t *a, const int16_t *b,
                         int16_t *out, int32_t elements) {
    return arm_elementwise_add_s16(a, b, 0, c->input1_multiplier, c->input1_shift, 0,
                                   c->input2_multiplier, c->input2_shift, c->left_shift, out, 0,
                                   c->output_multiplier, c->output_shift, c->clamp_min,
                                   c->clamp_max, elements);
}

int32_t library_wide_mul(const nn_mul_constants *c, const int16_t *a, const int16_t *b,
                         int16_t *out, int32_t elements) {
    return arm_elementwise_mul_s16(a, b, 0, 0, out, 0, c->output_multiplier, c->output_shift,
                                   c->clamp_min, c->clamp_max, elements);
}
