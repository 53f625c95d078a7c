/* A stand-in for CMSIS-NN in tests: plain C that computes what the library documents.
 *
 * Scratch is written from end to end and its use is required, so that too little shows. As the
 * library's, its Helium kernel for images of one row fails where it finds padding that it cannot
 * do.
 */
#include "arm_nnfunctions.h"

#include <stddef.h>

#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE
enum { MVE = 1 };
#else
enum { MVE = 0 };
#endif

static int32_t least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t most(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Half away from zero, but halves below zero up: a doubling high multiplication. */
static int32_t high_mul(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b + (1LL << 30)) >> 31);
}

/* Half away from zero. */
static int32_t divide_by_power(int32_t a, int32_t exponent) {
    const int32_t mask = (1 << exponent) - 1, rest = a & mask;
    return (a >> exponent) + (rest > (mask >> 1) + (a < 0));
}

static int32_t requantize(int32_t value, int32_t multiplier, int32_t shift) {
    const uint32_t shifted = (uint32_t)value << most(shift, 0);
    return divide_by_power(high_mul((int32_t)shifted, multiplier), most(-shift, 0));
}

static int8_t clamped(int32_t value, int32_t low, int32_t high) {
    return (int8_t)most(low, least(high, value));
}

/* Whether there is enough scratch; all of it is spoilt. */
static int spoil(const cmsis_nn_context *ctx, int32_t bytes) {
    volatile uint8_t *scratch = ctx->buf;
    for (int32_t i = 0; i < bytes && scratch != NULL; i++) {
        scratch[i] = (uint8_t)(0x5A + i);
    }
    return bytes == 0 || (scratch != NULL && ctx->size >= bytes);
}

/* ---- convolutions ---- */

/* Sum over the taps that meet the input of (input + offset) * weight: `inputs` channels from `c`
 * on, their weights `step` apart from tap to tap. */
static int32_t sum_taps(const cmsis_nn_dims *input, const int8_t *x, const cmsis_nn_dims *filter,
                        const int8_t *w, cmsis_nn_tile at, cmsis_nn_tile dilation, int32_t offset,
                        int32_t c, int32_t inputs, int32_t step) {
    int32_t sum = 0;
    for (int32_t ky = 0; ky < filter->h; ky++) {
        for (int32_t kx = 0; kx < filter->w; kx++, w += step) {
            const int32_t iy = at.h + ky * dilation.h, ix = at.w + kx * dilation.w;
            if (iy < 0 || iy >= input->h || ix < 0 || ix >= input->w) {
                continue;
            }
            const int8_t *pixel = x + (iy * input->w + ix) * input->c + c;
            for (int32_t i = 0; i < inputs; i++) {
                sum += (pixel[i] + offset) * w[i];
            }
        }
    }
    return sum;
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *ctx,
                                            const cmsis_nn_conv_params *p,
                                            const cmsis_nn_per_channel_quant_params *quant,
                                            const cmsis_nn_dims *input, const int8_t *x,
                                            const cmsis_nn_dims *filter, const int8_t *w,
                                            const cmsis_nn_dims *bias_dims, const int32_t *bias,
                                            const cmsis_nn_dims *output, int8_t *out) {
    const int32_t taps = filter->h * filter->w * filter->c;
    if (filter->c != input->c || filter->n != output->c || bias_dims->c != output->c ||
        !spoil(ctx, arm_convolve_wrapper_s8_get_buffer_size(p, input, filter, output))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    const int32_t pads = (output->w - 1) * p->stride.w + filter->w - input->w;
    const int is_row = MVE && input->h == 1 && filter->h == 1 && filter->w > 1 &&
                       p->dilation.w == 1 && p->stride.w * input->c % 4 == 0;
    if (is_row && (2 * p->padding.w + pads % 2 != pads || output->h != 1)) {
        return ARM_CMSIS_NN_FAILURE;
    }
    for (int32_t i = 0; i < output->h * output->w * output->c; i++) {
        const int32_t o = i % output->c, pixel = i / output->c;
        const cmsis_nn_tile at = {.w = pixel % output->w * p->stride.w - p->padding.w,
                                  .h = pixel / output->w * p->stride.h - p->padding.h};
        const int32_t sum = sum_taps(input, x, filter, w + o * taps, at, p->dilation,
                                     p->input_offset, 0, input->c, input->c);
        const int32_t scaled = requantize(sum + bias[o], quant->multiplier[o], quant->shift[o]);
        out[i] = clamped(scaled + p->output_offset, p->activation.min, p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *p,
    const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *input, const int8_t *x,
    const cmsis_nn_dims *filter, const int8_t *w, const cmsis_nn_dims *bias_dims,
    const int32_t *bias, const cmsis_nn_dims *output, int8_t *out) {
    if (filter->c != output->c || input->c * p->ch_mult != output->c || bias_dims->c != output->c ||
        !spoil(ctx, arm_depthwise_conv_wrapper_s8_get_buffer_size(p, input, filter, output))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t i = 0; i < output->h * output->w * output->c; i++) {
        const int32_t o = i % output->c, pixel = i / output->c;
        const cmsis_nn_tile at = {.w = pixel % output->w * p->stride.w - p->padding.w,
                                  .h = pixel / output->w * p->stride.h - p->padding.h};
        const int32_t sum = sum_taps(input, x, filter, w + o, at, p->dilation, p->input_offset,
                                     o / p->ch_mult, 1, output->c);
        const int32_t scaled = requantize(sum + bias[o], quant->multiplier[o], quant->shift[o]);
        out[i] = clamped(scaled + p->output_offset, p->activation.min, p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* ---- elementwise ---- */

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t *a, const int8_t *b, int32_t a_offset,
                                           int32_t a_mult, int32_t a_shift, int32_t b_offset,
                                           int32_t b_mult, int32_t b_shift, int32_t left_shift,
                                           int8_t *output, int32_t out_offset, int32_t out_mult,
                                           int32_t out_shift, int32_t out_min, int32_t out_max,
                                           int32_t block_size) {
    for (int32_t i = 0; i < block_size; i++) {
        const int32_t first = requantize((a[i] + a_offset) * (1 << left_shift), a_mult, a_shift);
        const int32_t second = requantize((b[i] + b_offset) * (1 << left_shift), b_mult, b_shift);
        const int32_t sum = requantize(first + second, out_mult, out_shift);
        output[i] = clamped(sum + out_offset, out_min, out_max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t *a, const int8_t *b, int32_t a_offset,
                                           int32_t b_offset, int8_t *output, int32_t out_offset,
                                           int32_t out_mult, int32_t out_shift, int32_t out_min,
                                           int32_t out_max, int32_t block_size) {
    for (int32_t i = 0; i < block_size; i++) {
        const int32_t product = (a[i] + a_offset) * (b[i] + b_offset);
        output[i] =
            clamped(requantize(product, out_mult, out_shift) + out_offset, out_min, out_max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* ---- pooling ---- */

/* The mean, or the largest, of the window of one output element. */
static int32_t pooled(const cmsis_nn_pool_params *p, const cmsis_nn_dims *input, const int8_t *x,
                      const cmsis_nn_dims *filter, const cmsis_nn_dims *output, int32_t i,
                      int mean) {
    const int32_t c = i % output->c, pixel = i / output->c;
    const int32_t left = pixel % output->w * p->stride.w - p->padding.w;
    const int32_t top = pixel / output->w * p->stride.h - p->padding.h;
    int32_t sum = 0, largest = -128, count = 0;
    for (int32_t y = most(top, 0); y < least(top + filter->h, input->h); y++) {
        for (int32_t k = most(left, 0); k < least(left + filter->w, input->w); k++, count++) {
            const int32_t value = x[(y * input->w + k) * input->c + c];
            sum += value;
            largest = most(largest, value);
        }
    }
    return mean ? (sum + (sum > 0 ? count / 2 : -(count / 2))) / count : largest;
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                   const cmsis_nn_dims *input, const int8_t *x,
                                   const cmsis_nn_dims *filter, const cmsis_nn_dims *output,
                                   int8_t *out) {
    if (input->c != output->c || !spoil(ctx, arm_avgpool_s8_get_buffer_size(output->w, input->c))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t i = 0; i < output->h * output->w * output->c; i++) {
        out[i] = clamped(pooled(p, input, x, filter, output, i, 1), p->activation.min,
                         p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *p,
                                    const cmsis_nn_dims *input, const int8_t *x,
                                    const cmsis_nn_dims *filter, const cmsis_nn_dims *output,
                                    int8_t *out) {
    (void)ctx;
    for (int32_t i = 0; i < output->h * output->w * output->c; i++) {
        out[i] = clamped(pooled(p, input, x, filter, output, i, 0), p->activation.min,
                         p->activation.max);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* ---- softmax: fixed-point numbers as in TFLite's reference kernel ---- */

/* exp of a <= 0 with 26 fractional bits, as a fraction of 2^31. */
static int32_t exp_of_negative(int32_t a) {
    static const int32_t powers[] = {1672461947, 1302514674, 790015084, 290630308,
                                     39332535,   720401,     242};
    const int32_t quarter = 1 << 24, last = (a & (quarter - 1)) - quarter, rest = last - a;
    const int32_t x = (last << 5) + (1 << 28), x2 = high_mul(x, x), x3 = high_mul(x2, x);
    const int32_t x4 = divide_by_power(high_mul(x2, x2), 2);
    const int32_t tail = divide_by_power(high_mul(x4 + x3, 715827883) + x2, 1);
    int32_t result = 1895147668 + high_mul(x + tail, 1895147668);
    for (int32_t i = 0; i < 7; i++) {
        if ((rest & (1 << (24 + i))) != 0) {
            result = high_mul(result, powers[i]);
        }
    }
    return a == 0 ? INT32_MAX : result;
}

/* 1 / (1 + x), x a fraction of 2^31, as a fraction of 2^31. */
static int32_t one_over_one_plus(int32_t x) {
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) >> 1);
    int32_t y = 1515870810 + high_mul(half, -1010580540);
    for (int32_t i = 0; i < 3; i++) {
        y += high_mul(y, (1 << 29) - high_mul(half, y)) << 2;
    }
    return (int32_t)least(y, INT32_MAX >> 1) << 1;
}

static int32_t exponential(int32_t difference, int32_t mult, int32_t shift) {
    return exp_of_negative(high_mul((int32_t)((uint32_t)difference << shift), mult));
}

void arm_softmax_s8(const int8_t *input, int32_t num_rows, int32_t row_size, int32_t mult,
                    int32_t shift, int32_t diff_min, int8_t *output) {
    for (int32_t row = 0; row < num_rows; row++, input += row_size, output += row_size) {
        int32_t largest = -128, sum = 0;
        for (int32_t i = 0; i < row_size; i++) {
            largest = most(largest, input[i]);
        }
        for (int32_t i = 0; i < row_size; i++) {
            if (input[i] - largest >= diff_min) {
                sum += divide_by_power(exponential(input[i] - largest, mult, shift), 12);
            }
        }
        const int32_t headroom = __builtin_clz((uint32_t)sum);
        const int32_t fraction = (int32_t)(((uint32_t)sum << headroom) - (1U << 31));
        const int32_t factor = one_over_one_plus(fraction);
        for (int32_t i = 0; i < row_size; i++) {
            const int32_t difference = input[i] - largest;
            int32_t value = 0;
            if (difference >= diff_min) {
                const int32_t product = high_mul(factor, exponential(difference, mult, shift));
                value = divide_by_power(product, 12 - headroom + 31 - 8);
            }
            output[i] = clamped(value - 128, -128, 127);
        }
    }
}
