/* MUL on int16 of two tensors with the same channels; the plain kernel serves broadcasting along
 * channels. */
#include "nn_dsp_pixelwise_s16.h"

/* `count`: bytes. */
NN_OUTLINE void compute(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    const nn_mul_constants *c = (const nn_mul_constants *)plan;
    const int32_t multiplier = c->output_multiplier, shift = -1 - c->output_shift;
    const int32_t half = (int32_t)((uint32_t)1 << (shift - 1));
    const int16_t *first = (const int16_t *)(const void *)a;
    const int16_t *second = (const int16_t *)(const void *)b;
    int16_t *to = (int16_t *)(void *)out, *const end = to + count / 2;
    const int32_t low = c->clamp_min, high = c->clamp_max;
#pragma GCC unroll 1
    while (to != end) { /* as nn_requantise, of a multiplier that is not negative */
        const int32_t product = *first++ * *second++;
        const uint32_t below = ((uint32_t)product & 0x80000000U) | 0x40000000U;
        const int64_t rounding =
            (int64_t)(((uint64_t)(uint32_t)(half + (product >> 31)) << 32) | below);
        const int32_t scaled = (int32_t)((rounding + (int64_t)product * multiplier) >> 32) >> shift;
        *to++ = (int16_t)nn_ssat16(scaled);
    }
    nn_dsp_clamp_wide(end - count / 2, count / 2, low, high);
}

void nn_mul_s16_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    if (in1->channels == out->channels && in2->channels == out->channels &&
        c->output_multiplier >= 0 && c->output_shift <= -2) {
        nn_dsp_for_wide_runs(compute, c, in1, in2, out, window);
    } else {
        nn_mul_s16(constants, in1, in2, out, window);
    }
}
