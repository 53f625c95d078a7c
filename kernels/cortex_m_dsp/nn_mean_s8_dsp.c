/* MEAN where four outputs at a time come from four neighbours; the plain kernel does the rest. */
#include "nn_dsp_pool.h"

/* The sums over the reduced dimensions, from four elements on. */
static void sum_inner(nn_dsp_sums *s, const nn_reduce_geometry *g, const int8_t *in) {
    const int32_t rank = g->inner_rank - 1;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    nn_dsp_start_sums(s);
    do {
        nn_dsp_add_words(s, in + offset, g->inner_stride[rank], g->inner[rank]);
    } while (nn_next(rank, g->inner, index, g->inner_stride, &offset));
    nn_dsp_move_halves(s);
}

void nn_mean_s8_dsp(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                    int8_t *out) {
    const nn_reduce_geometry *g = geometry;
    const nn_mean_constants c = *(const nn_mean_constants *)constants;
    const int32_t last = g->outer_rank - 1, channels = last >= 0 ? g->outer[last] : 0;
    int32_t index[NN_MAX_RANK] = {0}, offset = 0;
    if (channels < NN_DSP_BLOCK || g->outer_stride[last] != 1 || g->inner_rank == 0) {
        nn_mean_s8(geometry, constants, in, out);
        return;
    }
    do {
        for (int32_t first = 0; first < channels; first += NN_DSP_BLOCK) {
            const int32_t place = nn_min(first, channels - NN_DSP_BLOCK);
            nn_dsp_sums s;
            sum_inner(&s, g, in + offset + place);
            for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
                const int32_t mean = nn_requantise(s.sums[i] - c.sum_zero_point,
                                                   c.output_multiplier, c.output_shift);
                out[place + i] = (int8_t)nn_ssat8(mean + c.output_zero_point);
            }
        }
        out += channels;
    } while (nn_next(last, g->outer, index, g->outer_stride, &offset));
}
