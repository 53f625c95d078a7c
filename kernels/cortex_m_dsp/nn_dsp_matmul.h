/* A few pixels times all output channels: the heart of the convolutions.
 *
 * The pixels' inputs lie in scratch, widened to int16 and interleaved: for every four inputs
 * ("quad") k of pixels p the words (k0, k2) of all pixels, then (k1, k3) of all; six zero words
 * stand before the first.
 *
 * The weights of output channels 2i and 2i + 1 are packed as one stream: for every quad the words
 * (k0, k2), (k1, k3), in which each half is 256 * (weight of channel 2i + 1) + (weight of channel
 * 2i). A dual multiply-accumulate of such a word adds 256 * second + first; the halves' low bytes,
 * sign extended, are the first alone, and the difference is 256 * second: three instructions for
 * four products of one pixel. The two nn_dsp_channel stand behind the pair's weights, the next pair
 * behind them.
 */
#ifndef NN_DSP_MATMUL_H
#define NN_DSP_MATMUL_H

#include "nn_dsp.h"

#define NN_DSP_PIXELS 3 /* at a time, at most */
#define NN_DSP_ZEROS 6  /* words before the widened inputs */

/* What all tiles of a call share; the assembly knows the order. */
typedef struct {
    int32_t quads;    /* of a pixel's inputs */
    int32_t stride;   /* bytes from pixel to pixel of the output */
    int32_t pairs;    /* of output channels; an odd last one not counted */
    int32_t channels; /* of the output */
} nn_dsp_shape;

static inline nn_dsp_shape nn_dsp_shape_for(int32_t quads, const nn_view *out) {
    const nn_dsp_shape shape = {quads, out->pixel_stride, out->channels / 2, out->channels};
    return shape;
}

/* Computes `pixels` (1 to NN_DSP_PIXELS) of a row of output, the first of them at `out`. */
void nn_dsp_matmul(const nn_dsp_constants *constants, int32_t pixels, const uint32_t *scratch,
                   const nn_dsp_shape *shape, int8_t *out);

/* Pixels that are computed together where there are `count` in all. */
static inline int32_t nn_dsp_most_pixels(int32_t count) {
    return nn_min(count, NN_DSP_PIXELS);
}

/* Bytes of scratch for `pixels` of so many quads each. */
static inline int32_t nn_dsp_widened_bytes(int32_t pixels, int32_t quads) {
    return 4 * NN_DSP_ZEROS + 8 * pixels * quads;
}

/* Where the inputs are widened to; writes the zeros. */
static inline uint32_t *nn_dsp_widened(void *scratch) {
    uint32_t *words = (uint32_t *)scratch;
    for (int32_t i = 0; i < NN_DSP_ZEROS; i++) {
        words[i] = 0;
    }
    return words + NN_DSP_ZEROS;
}

/* How many pixels to compute next, so that none is left alone if two can go together. */
static inline int32_t nn_dsp_tile(int32_t left) {
    return left == 4 ? 2 : nn_min(left, NN_DSP_PIXELS);
}

/* Widens `count` bytes of one pixel of `pixels`; returns where the next quad goes. */
static inline uint32_t *nn_dsp_widen1(uint32_t *x, int32_t pixels, const int8_t *from,
                                      int32_t count) {
    for (; count >= 4; count -= 4, from += 4, x += 2 * pixels) {
        const uint32_t word = nn_load4(from);
        x[0] = nn_sxtb16(word);
        x[pixels] = nn_sxtb16_ror8(word);
    }
    if (count > 0) {
        const uint32_t word = nn_load_tail(from, count);
        x[0] = nn_sxtb16(word);
        x[pixels] = nn_sxtb16_ror8(word);
        x += 2 * pixels;
    }
    return x;
}

/* Widens `quads` of each of `pixels`, which are `step` bytes apart. */
void nn_dsp_widen_quads(uint32_t *x, int32_t pixels, const int8_t *from, int32_t step,
                        int32_t quads);

/* Widens `count` bytes of each of `pixels`, which are `step` bytes apart. */
static inline void nn_dsp_widen(uint32_t *x, int32_t pixels, const int8_t *from, int32_t step,
                                int32_t count) {
    const int32_t quads = count / 4, rest = count % 4;
    if (quads > 0) {
        nn_dsp_widen_quads(x, pixels, from, step, quads);
    }
    if (rest > 0) {
        x += 2 * pixels * quads;
        from += 4 * quads;
        for (int32_t p = 0; p < pixels; p++, from += step) {
            (void)nn_dsp_widen1(x + p, pixels, from, rest);
        }
    }
}

/* Fills `quads` of all pixels with the same value. */
static inline uint32_t *nn_dsp_widen_value(uint32_t *x, int32_t pixels, int32_t value,
                                           int32_t quads) {
    const uint32_t word = nn_times2(value);
    for (int32_t i = 2 * pixels * quads; i > 0; i--) {
        *x++ = word;
    }
    return x;
}

#endif
