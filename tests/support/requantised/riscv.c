/* Scalar kernels for RISC-V; their dense layers are the plain ones'. */
#include "sums.h"

#include "../../../kernels/riscv/nn_riscv_scalar.h"

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
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
