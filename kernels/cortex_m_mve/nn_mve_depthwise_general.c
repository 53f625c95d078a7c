/* Depthwise tiles of any kernel, stride and factor: four output columns of a channel at a time, of
 * each as many loads of four words as the channel has vectors of weights. */
#include "nn_mve_depthwise.h"

/* The sum of one output, whose first words are at `place`. */
static inline int32_t sum_words(uint32x4_t place, const int8_t *weights, int32_t vectors) {
    int32_t sum = 0;
    for (int32_t i = 0; i < vectors; i++, weights += 16) {
        const int8x16_t words = vreinterpretq_s8_u32(vldrwq_gather_base_u32(place, 0));
        sum = vmladavaq_s8(sum, words, vldrbq_s8(weights));
        place = vaddq_n_u32(place, 4 * WORD_PITCH);
    }
    return sum;
}

/* Four sums as outputs: multiplier and shift as in nn_channel, rounded as nn_mve.h says. */
static inline int32x4_t requantise(int32x4_t sums, const nn_channel *channel,
                                   const nn_conv_constants *common) {
    const int32_t shift = channel->shift, odd = shift < 0;
    sums = vshlq_r_s32(vaddq_n_s32(sums, channel->bias), nn_max(shift, 0));
    sums = vqrdmulhq_n_s32(sums, channel->multiplier);
    sums = vrshlq_n_s32(vqdmlahq_n_s32(sums, sums, odd), nn_min(shift, 0));
    sums = vqaddq_n_s32(sums, common->output_zero_point);
    sums = vmaxq_s32(sums, vdupq_n_s32(common->clamp_min));
    return vminq_s32(sums, vdupq_n_s32(common->clamp_max));
}

/* `count` output columns of a channel, whose words begin at `place`. */
static NN_NOINLINE void compute_channel(const nn_mve_depthwise *d, uint32x4_t place,
                                        const int8_t *record, int32_t count, int8_t *out) {
    const nn_channel *const channel = (const nn_channel *)(const void *)(record + 16 * d->vectors);
    const int32_t across = d->across;
    const uint32x4_t offsets = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)across);
    for (; count > 0; count -= 4, out += 4 * across) {
        int32_t sum[4];
        for (int32_t i = 0; i < 4; i++) {
            sum[i] = sum_words(place, record, d->vectors);
            place = vaddq_n_u32(place, (uint32_t)d->apart);
        }
        vstrbq_scatter_offset_p_s32(out, offsets,
                                    requantise(vldrwq_s32(sum), channel, &d->head->common),
                                    vctp32q((uint32_t)count));
    }
}

void nn_mve_depthwise_general(const nn_mve_depthwise *d, const int8_t *record, int32_t channels,
                              int32_t count, int8_t *out) {
    for (int32_t i = 0; i < channels; i++, record += d->record) {
        const uint32x4_t place = vaddq_n_u32(nn_mve_first_words(d), (uint32_t)(4 * i));
        compute_channel(d, place, record, count, out + i * d->geometry->groups);
    }
}
