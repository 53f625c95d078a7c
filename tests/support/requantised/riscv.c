/* Scalar kernels for RISC-V. */
#include "sums.h"

#include "../../../kernels/riscv/nn_riscv_scalar.h"

static void dense_outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_conv_constants common = *(const nn_conv_constants *)l->block;
    const void *channels = (const nn_conv_constants *)l->block + 1;
    const nn_dense_channel k = ((const nn_dense_channel *)channels)[c];
    const int32_t products = (int32_t)((uint32_t)first - (uint32_t)l->biases[c]);
    for (int32_t i = 0; i < count; i++) {
        out[i] = nn_riscv_dense_output((int32_t)((uint32_t)products + (uint32_t)i), &k, &common);
    }
}

static void conv_outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_riscv_head *head = (const nn_riscv_head *)l->block;
    const nn_riscv_channel k = nn_riscv_channels(l->block)[c];
    const nn_conv_constants common = head->common;
    const int general = head->mode == NN_RISCV_GENERAL, odd = head->mode != NN_RISCV_PLAIN;
    /* A channel that has one output only has other constants, and no weights. */
    const uint32_t factor = (general ? 1U : 2U) * (uint32_t)l->factors[2 * c];
    const int constant = k.bias != l->biases[c] || k.multiplier != factor;
    for (int32_t i = 0; i < count; i++) {
        const int32_t sum = constant ? k.bias : first + i;
        out[i] = general ? nn_riscv_general(sum, &k, &common)
                         : nn_riscv_output(sum, k.multiplier, k.exponent, k.offset, odd,
                                           common.clamp_min, common.clamp_max);
    }
}

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    if (l->dense) {
        dense_outputs(l, c, first, count, out);
    } else {
        conv_outputs(l, c, first, count, out);
    }
}
