/* What the scalar RISC-V kernels share: their constants, and requantisation in few instructions.
 *
 * The reference's first rounding is floor((v * m + 2^30) / 2^31) = floor((2 v m + 2^31) / 2^32):
 * the product's high word (MULHSU: 2 m is unsigned) plus the low word's top bit. Its second is (q +
 * 2^(e-1) - (q < 0)) >> e for e >= 1; the half and the output's zero point, shifted, are one
 * constant. Without outputs below the zero point (mode "plain") negative q need no care: what the
 * correction changes is clamped anyway.
 */
#ifndef NN_RISCV_SCALAR_H
#define NN_RISCV_SCALAR_H

#include "nn_conv.h"

typedef enum { NN_RISCV_PLAIN = 0, NN_RISCV_ODD = 1, NN_RISCV_GENERAL = 2 } nn_riscv_mode;

typedef struct {
    nn_conv_constants common;
    int32_t mode; /* nn_riscv_mode */
    int32_t reserved[3];
} nn_riscv_head;

typedef struct {
    int32_t bias;
    uint32_t multiplier; /* twice nn_channel's */
    int32_t exponent;    /* 1 to 30; in mode "plain" 0 as well */
    int32_t offset;      /* 2^exponent / 2 (integers) + output zero point * 2^exponent */
} nn_riscv_channel;      /* mode "general": bias, multiplier and shift of nn_channel */

static inline const nn_riscv_channel *nn_riscv_channels(const void *constants) {
    return (const nn_riscv_channel *)(const void *)((const nn_riscv_head *)constants + 1);
}

/* A sum with its bias as an output element; `odd`: outputs may be below the zero point. */
static inline int8_t nn_riscv_output(int32_t sum, uint32_t multiplier, int32_t exponent,
                                     int32_t offset, int odd, int32_t low, int32_t high) {
    const uint64_t product = (uint64_t)((int64_t)sum * multiplier);
    int32_t q = (int32_t)((uint32_t)(product >> 32) + ((uint32_t)product >> 31));
    if (odd) {
        q += q >> 31;
    }
    return (int8_t)nn_clamp((q + offset) >> exponent, low, high);
}

static inline int8_t nn_riscv_general(int32_t sum, const nn_riscv_channel *channel,
                                      const nn_conv_constants *common) {
    const nn_channel plain = {0, (int32_t)channel->multiplier, channel->exponent};
    return nn_conv_output(sum, &plain, common);
}

/* As nn_dense_output, from the upper word of a product.
 *
 * A channel's `low` is 65536 times nn_dense_channel's. With e = 31 - nn_dense_channel's shift, a
 * sum's size is multiplied by 2^k so that e + k is at least 33: `shift` has k times 256, plus e + k
 * - 32, how far a product's upper word goes to the right. Sizes that are too large for it make more
 * than 255 anyway. */
static inline int8_t nn_riscv_dense_output(int32_t sum, const nn_dense_channel *channel,
                                           const nn_conv_constants *common) {
    const int32_t total = nn_wrapping_add(sum, channel->bias), right = channel->shift & 31;
    const uint32_t up = (uint32_t)channel->shift >> 8, most = UINT32_MAX >> up;
    uint32_t size = total < 0 ? 0U - (uint32_t)total : (uint32_t)total;
    size = (size < most ? size : most) << up;
    const uint32_t low = (uint32_t)(((uint64_t)size * (uint32_t)channel->low) >> 32);
    const uint64_t product = (uint64_t)size * (uint32_t)channel->multiplier + low;
    const uint32_t rounded = ((uint32_t)(product >> 32) + ((uint32_t)1 << (right - 1))) >> right;
    const int32_t scaled = rounded > 255 ? 255 : (int32_t)rounded;
    return (int8_t)nn_clamp((total < 0 ? -scaled : scaled) + common->output_zero_point,
                            common->clamp_min, common->clamp_max);
}

#endif
