/* DEPTHWISE_CONV_2D on int16, depth multiplier 1: pairs of channels by pairs of taps.
 *
 * Scratch: zeros for a pixel of padding, then the places of all taps of an output pixel. Packed
 * constants: as nn_depthwise_conv2d_s16's, with the weights of two channels (a last one with zeros)
 * behind each other: for each two taps a word, byte 0 and 1 the channels' weights of the first tap,
 * 2 and 3 those of the second (zeros where there is none). 511 taps at most: sums fit int32.
 */
#include "nn_dsp_wide.h"

/* The sums of two channels; `places` are the taps', an even number of them. */
static inline void sum_pair(int32_t sums[2], const int16_t *const *places, int32_t c, int32_t pairs,
                            const uint32_t *w) {
    int32_t s0 = 0, s1 = 0;
    for (; pairs > 0; pairs--, places += 2) {
        const uint32_t first = nn_dsp_wide_load(places[0] + c);
        const uint32_t second = nn_dsp_wide_load(places[1] + c), weights = *w++;
        s0 = nn_smlad(nn_sxtb16(weights), nn_pkhbt(first, second), s0);
        s1 = nn_smlad(nn_sxtb16_ror8(weights), nn_pkhtb(second, first), s1);
    }
    sums[0] = s0;
    sums[1] = s1;
}

/* The sum of a last channel, whose neighbour is not there. */
static int32_t sum_last(const int16_t *const *places, int32_t c, int32_t pairs, const uint32_t *w) {
    int32_t sum = 0;
    for (; pairs > 0; pairs--, places += 2) {
        const uint32_t weights = *w++;
        sum += places[0][c] * (int8_t)(uint8_t)weights;
        sum += places[1][c] * (int8_t)(uint8_t)(weights >> 16);
    }
    return sum;
}

/* The places of all taps of an output pixel, `zeros` where there is padding. */
NN_OUTLINE void find_taps(const nn_conv_geometry *g, const nn_view *in, int32_t top, int32_t left,
                          const int16_t *zeros, const int16_t **places) {
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        const int32_t y = top + ky * g->dilation_h;
        const int row_inside = y >= 0 && y < in->height;
        const int8_t *row = row_inside ? nn_row(in, y) : NULL;
        for (int32_t kx = 0; kx < g->kernel_w; kx++) {
            const int32_t x = left + kx * g->dilation_w;
            const int inside = row_inside && x >= 0 && x < in->width;
            const int8_t *place = inside ? row + nn_column(in, x) * in->pixel_stride : NULL;
            *places++ = inside ? (const int16_t *)(const void *)place : zeros;
        }
    }
}

void nn_depthwise_conv2d_s16_dsp(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const nn_wide_channel *channels = (const nn_wide_channel *)block.channels;
    const int32_t outputs = out->channels, taps = g->kernel_h * g->kernel_w;
    const int32_t pairs = (taps + 1) / 2, filled = (outputs + 7) / 8 * 8;
    int16_t *zeros = (int16_t *)scratch;
    const int16_t **places = (const int16_t **)(void *)(zeros + filled);
    __builtin_memset(zeros, 0, 2 * (size_t)filled);
    places[2 * pairs - 1] = zeros;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const uint32_t *w = (const uint32_t *)(const void *)block.weights;
            int16_t *result = nn_wide_out(out, y, x);
            int32_t c = 0;
            find_taps(g, in, y * g->stride_h - g->pad_top, x * g->stride_w - g->pad_left, zeros,
                      places);
            for (; c + 2 <= outputs; c += 2, w += pairs) {
                int32_t sums[2];
                sum_pair(sums, places, c, pairs, w);
                result[c] = nn_wide_output(sums[0], channels + c, &block.common);
                result[c + 1] = nn_wide_output(sums[1], channels + c + 1, &block.common);
            }
            if (c < outputs) {
                const int32_t sum = sum_last(places, c, pairs, w);
                result[c] = nn_wide_output(sum, channels + c, &block.common);
            }
        }
    }
}
