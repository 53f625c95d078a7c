/* A stand-in for CMSIS-NN in tests: how much scratch its functions want, by the kind of core.
 *
 * As the library documents them: each size for a build with Helium (_mve), for one with the DSP
 * extension (_dsp), both of which any compiler takes, and for the build that is compiled.
 */
#include "arm_nnfunctions.h"

#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE
#define THIS_BUILD(mve, dsp) (mve)
#else
#define THIS_BUILD(mve, dsp) (dsp)
#endif

static int is_1x1(const cmsis_nn_conv_params *p, const cmsis_nn_dims *filter) {
    return p->padding.w == 0 && p->padding.h == 0 && filter->w == 1 && filter->h == 1 &&
           p->dilation.w == 1 && p->dilation.h == 1;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params *p,
                                                    const cmsis_nn_dims *input,
                                                    const cmsis_nn_dims *filter,
                                                    const cmsis_nn_dims *output) {
    const int32_t taps = input->c * filter->w * filter->h;
    (void)output;
    if (is_1x1(p, filter)) {
        return 0;
    }
    if (input->h == 1 && p->dilation.w == 1 && filter->h == 1 && p->stride.w * input->c % 4 == 0) {
        return filter->w * input->c + p->padding.w * input->c;
    }
    return 4 * ((taps + 15) / 16) * 16;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params *p,
                                                    const cmsis_nn_dims *input,
                                                    const cmsis_nn_dims *filter,
                                                    const cmsis_nn_dims *output) {
    const int32_t taps = input->c * filter->w * filter->h;
    (void)output;
    return is_1x1(p, filter) ? 0 : 2 * ((taps + 3) / 4 * 4) * 2;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *p,
                                                const cmsis_nn_dims *input,
                                                const cmsis_nn_dims *filter,
                                                const cmsis_nn_dims *output) {
    return THIS_BUILD(arm_convolve_wrapper_s8_get_buffer_size_mve(p, input, filter, output),
                      arm_convolve_wrapper_s8_get_buffer_size_dsp(p, input, filter, output));
}

static int is_plain(const cmsis_nn_dw_conv_params *p, const cmsis_nn_dims *input,
                    const cmsis_nn_dims *output) {
    return input->c == output->c && p->dilation.w == 1 && p->dilation.h == 1;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params *p,
                                                          const cmsis_nn_dims *input,
                                                          const cmsis_nn_dims *filter,
                                                          const cmsis_nn_dims *output) {
    return is_plain(p, input, output) ? 4 * 124 * filter->w * filter->h : 0;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params *p,
                                                          const cmsis_nn_dims *input,
                                                          const cmsis_nn_dims *filter,
                                                          const cmsis_nn_dims *output) {
    if (!is_plain(p, input, output) ||
        (filter->w == 3 && filter->h == 3 && p->padding.h <= 1 && p->padding.w <= 1)) {
        return 0;
    }
    return input->c * filter->w * filter->h * 2;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *p,
                                                      const cmsis_nn_dims *input,
                                                      const cmsis_nn_dims *filter,
                                                      const cmsis_nn_dims *output) {
    return THIS_BUILD(arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(p, input, filter, output),
                      arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(p, input, filter, output));
}

int32_t arm_avgpool_s8_get_buffer_size_mve(int output_x, int ch_src) {
    (void)output_x;
    (void)ch_src;
    return 0;
}

int32_t arm_avgpool_s8_get_buffer_size_dsp(int output_x, int ch_src) {
    (void)output_x;
    return 4 * ch_src;
}

int32_t arm_avgpool_s8_get_buffer_size(int output_x, int ch_src) {
    return THIS_BUILD(arm_avgpool_s8_get_buffer_size_mve(output_x, ch_src),
                      arm_avgpool_s8_get_buffer_size_dsp(output_x, ch_src));
}
