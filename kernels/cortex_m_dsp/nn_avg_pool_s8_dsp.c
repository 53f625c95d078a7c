/* AVERAGE_POOL_2D, four channels at a time; the plain kernel serves fewer. */
#include "nn_dsp_pool.h"

static void compute(const nn_dsp_area *area, int32_t c, int8_t *out) {
    const int32_t count = area->rows * area->columns;
    nn_dsp_sums s;
    nn_dsp_start_sums(&s);
    nn_dsp_walk(area, c, nn_dsp_add_words, &s);
    nn_dsp_move_halves(&s);
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        const int32_t half = count / 2, sum = s.sums[i];
        /* Halves away from zero. */
        out[i] = (int8_t)((sum > 0 ? sum + half : sum - half) / count);
    }
}

void nn_avg_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    if (in->channels < NN_DSP_BLOCK) {
        nn_avg_pool_s8(geometry, constants, in, out, window);
    } else {
        nn_dsp_pool(compute, geometry, (const nn_pool_constants *)constants, in, out, window);
    }
}
