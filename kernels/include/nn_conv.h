/* What the plain C convolutions and dense layers share: their constants and outputs. */
#ifndef NN_CONV_H
#define NN_CONV_H

#include "nn_arith.h"

/* A function of its own, even where it is called once: a hot loop has the registers to itself, and
 * a rare path does not take them from its caller. */
#define NN_OUTLINE static __attribute__((noinline, unused))

/* The weights behind the constants: they begin at the next multiple of 16 bytes. */
static inline const int8_t *nn_weights(const void *constants, int32_t channels,
                                       size_t channel_bytes) {
    const size_t head = sizeof(nn_conv_constants) + (size_t)channels * channel_bytes + (size_t)15;
    return (const int8_t *)constants + head / 16 * 16;
}

/* A convolution's constants. */
typedef struct {
    nn_conv_constants common;
    const nn_channel *channels;
    const int8_t *weights;
} nn_conv_block;

static inline nn_conv_block nn_conv_open(const void *constants, int32_t channels) {
    nn_conv_block block;
    block.common = *(const nn_conv_constants *)constants;
    block.channels = (const nn_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    block.weights = nn_weights(constants, channels, sizeof(nn_channel));
    return block;
}

/* A convolution's sum (without its bias) as an output element. */
static inline int8_t nn_conv_output(int32_t sum, const nn_channel *channel,
                                    const nn_conv_constants *common) {
    const int32_t scaled =
        nn_requantise(nn_wrapping_add(sum, channel->bias), channel->multiplier, channel->shift);
    return (int8_t)nn_clamp(nn_wrapping_add(scaled, common->output_zero_point), common->clamp_min,
                            common->clamp_max);
}

/* Four sums as the output elements of four successive channels. */
NN_OUTLINE void nn_conv_output4(const int32_t sums[4], const nn_channel *channels,
                                const nn_conv_constants *common, int8_t *out) {
    const nn_conv_constants c = *common;
    for (int32_t i = 0; i < 4; i++) {
        out[i] = nn_conv_output(sums[i], channels + i, &c);
    }
}

/* A dense layer's sum (without its bias) as an output element: rounded once, halves away from
 * zero. The product's 16 lowest bits are below what the rounding constant can carry into. */
static inline int8_t nn_dense_output(int32_t sum, const nn_dense_channel *channel,
                                     const nn_conv_constants *common) {
    const int32_t total = nn_wrapping_add(sum, channel->bias);
    const uint32_t size = total < 0 ? 0U - (uint32_t)total : (uint32_t)total;
    const uint64_t product = (uint64_t)size * (uint32_t)channel->multiplier +
                             (((uint64_t)size * (uint32_t)channel->low) >> 16);
    const uint64_t rounded =
        (product + ((uint64_t)1 << (30 - channel->shift))) >> (31 - channel->shift);
    const int32_t scaled = rounded > 255 ? 255 : (int32_t)rounded;
    return (int8_t)nn_clamp((total < 0 ? -scaled : scaled) + common->output_zero_point,
                            common->clamp_min, common->clamp_max);
}

#endif
