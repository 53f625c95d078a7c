/* Kernels for the LX106. */
#include "sums.h"

#include "../../../kernels/mul32/nn_mul32_scale.h"

static void conv(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_mul32_head *head = (const nn_mul32_head *)l->block;
    const nn_mul32_channel k = nn_mul32_channels(l->block)[c];
    const nn_conv_constants common = head->common;
    const nn_channel plain = {0, k.multiplier, k.shift};
    const nn_mul32_factor f = nn_mul32_split(
        k.multiplier, head->mode == NN_MUL32_GENERAL ? 1 : k.shift, common.output_zero_point);
    /* A channel that has one output only has other constants, and no weights. */
    const int constant =
        k.bias != l->biases[c] - 128 * l->weights[c] || k.multiplier != l->factors[2 * c];
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = constant ? k.bias : first + i;
        if (head->mode == NN_MUL32_GENERAL) {
            out[i] = nn_conv_output(value, &plain, &common);
        } else {
            const int32_t scaled =
                nn_mul32_scale(value, &f, head->mode == NN_MUL32_ODD, head->wide);
            out[i] = (int8_t)nn_clamp(scaled, common.clamp_min, common.clamp_max);
        }
    }
}

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_conv_constants *common = (const nn_conv_constants *)l->block;
    const nn_dense_channel *row = (const nn_dense_channel *)(const void *)(common + 1) + c;
    if (!l->dense) {
        conv(l, c, first, count, out);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        const int32_t products = (int32_t)((uint32_t)(first + i) - (uint32_t)row->bias);
        out[i] = nn_mul32_dense_output(products, row, common);
    }
}
