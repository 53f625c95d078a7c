/* Kernels for cores with the DSP extension, their instructions modelled in C (nn_dsp.h). */
#include "sums.h"

#include "../../../kernels/cortex_m_dsp/nn_fully_connected_s8_dsp.c"

/* Pairs of channels behind their weights, a halfword an input, filled up to quads (packing.py); or
 * blocks of four with their taps behind them, the last block made of the last four. */
static const nn_dsp_channel *conv_channel(const layer *l, int32_t c) {
    const int32_t quads = (l->taps + 3) / 4;
    const int8_t *stream = (const int8_t *)((const nn_dsp_constants *)l->block + 1);
    if (l->depthwise) {
        const int32_t block = c / 4, first = nn_min(4 * block, l->channels - 4);
        stream += block * (4 * 16 + 4 * l->taps);
        return (const nn_dsp_channel *)(const void *)stream + (c - first);
    }
    stream += (c / 2) * (quads * 8 + 32) + quads * 8;
    return (const nn_dsp_channel *)(const void *)stream + c % 2;
}

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const nn_dsp_constants *head = (const nn_dsp_constants *)l->block;
    const nn_conv_constants common = head->common;
    const int general = c >= head->general_first && c < head->general_end;
    const channel *dense = (const channel *)(const void *)(head + 1) + c;
    for (int32_t i = 0; i < count; i++) {
        const int32_t products = (int32_t)((uint32_t)(first + i) - (uint32_t)l->biases[c]);
        if (l->dense) {
            put(&products, dense, 1, &common, out + i);
        } else if (general) {
            out[i] = nn_dsp_general_output(products, conv_channel(l, c), &common);
        } else {
            out[i] = (int8_t)nn_dsp_output(products, conv_channel(l, c));
        }
    }
    nn_dsp_clamp(out, count, common.clamp_min, common.clamp_max);
}
