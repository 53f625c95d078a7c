/* A few pixels times all output channels: see nn_dsp_matmul.h. */
#include "nn_dsp_tile1.h"
#include "nn_dsp_tile2.h"
#include "nn_dsp_tile3.h"

/* Two output channels' sums of each pixel in exact arithmetic; x: the first widened word. */
NN_OUTLINE void sum_pair(int32_t sums[2 * NN_DSP_PIXELS], const uint32_t *x, int32_t pixels,
                         const uint32_t *w, int32_t quads) {
    const uint32_t *end = w + 2 * quads;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
    for (; w != end; w++, x += pixels) {
        const uint32_t both = *w, even = nn_sxtb16(both);
        const uint32_t odd = nn_sxtb16_ror8(nn_ssub16(both, even));
        s0 = nn_smlad(even, x[0], s0);
        s1 = nn_smlad(odd, x[0], s1);
        if (pixels > 1) {
            s2 = nn_smlad(even, x[1], s2);
            s3 = nn_smlad(odd, x[1], s3);
        }
        if (pixels > 2) {
            s4 = nn_smlad(even, x[2], s4);
            s5 = nn_smlad(odd, x[2], s5);
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    sums[4] = s4;
    sums[5] = s5;
}

/* The general channels, over what the others' arithmetic made of them; x: the first widened word.
 */
NN_OUTLINE void multiply_general(const nn_dsp_constants *constants, int32_t pixels,
                                 const uint32_t *x, const nn_dsp_shape *shape, int8_t *out) {
    const int32_t quads = shape->quads, channels = shape->channels, stride = shape->stride;
    const int32_t pair = 2 * quads + 2 * (int32_t)sizeof(nn_dsp_channel) / 4; /* words */
    const uint32_t *first = (const uint32_t *)(const void *)(constants + 1);
    const int32_t end = nn_min(constants->general_end, channels);
    for (int32_t c = constants->general_first; c < end; c += 2) {
        const uint32_t *w = first + c / 2 * pair;
        const nn_dsp_channel *channel = (const nn_dsp_channel *)(const void *)(w + 2 * quads);
        int32_t sums[2 * NN_DSP_PIXELS];
        sum_pair(sums, x, pixels, w, quads);
        for (int32_t i = 0; i < nn_min(2, channels - c); i++) {
            for (int32_t p = 0; p < pixels; p++) {
                out[p * stride + c + i] =
                    nn_dsp_general_output(sums[2 * p + i], channel + i, &constants->common);
            }
        }
    }
}

#if NN_DSP

static void multiply(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                     const nn_dsp_shape *shape) {
    if (pixels == 3) {
        nn_dsp_tile3(x, stream, out, shape);
    } else if (pixels == 2) {
        nn_dsp_tile2(x, stream, out, shape);
    } else {
        nn_dsp_tile1(x, stream, out, shape);
    }
}

#else

/* The same arithmetic, step by step. */
static void multiply(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                     const nn_dsp_shape *shape) {
    const uint32_t *w = (const uint32_t *)stream;
    for (int32_t pair = 0; pair < shape->pairs; pair++, out += 2) {
        const nn_dsp_channel *c = (const nn_dsp_channel *)(const void *)(w + 2 * shape->quads);
        for (int32_t p = 0; p < pixels; p++) {
            int32_t even = (int32_t)x[p], both = (int32_t)x[pixels + p];
            for (int32_t i = 0; i < 2 * shape->quads; i++) {
                const uint32_t inputs = x[2 * pixels + i * pixels + p];
                even = nn_smlad(nn_sxtb16(w[i]), inputs, even);
                both = nn_smlad(w[i], inputs, both);
            }
            out[p * shape->stride] = (int8_t)nn_dsp_output(even, c);
            out[p * shape->stride + 1] =
                (int8_t)nn_dsp_output((int32_t)((uint32_t)both - (uint32_t)even) >> 8, c + 1);
        }
        w = (const uint32_t *)(const void *)(c + 2);
    }
}

#endif

/* The last channel of an odd number has a partner whose outputs nobody wants. */
NN_OUTLINE void multiply_last(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                              const nn_dsp_shape *all) {
    const nn_dsp_shape shape = {all->quads, 2, 1, 2};
    int8_t pair[2 * NN_DSP_PIXELS];
    multiply(pixels, x, stream, pair, &shape);
    for (int32_t p = 0; p < pixels; p++) {
        out[p * all->stride] = pair[2 * p];
    }
}

void nn_dsp_matmul(const nn_dsp_constants *constants, int32_t pixels, const uint32_t *scratch,
                   const nn_dsp_shape *shape, int8_t *out) {
    const int32_t channels = shape->channels;
    const uint32_t *x = scratch + NN_DSP_ZEROS - 2 * pixels;
    if (constants->general_first == 0 && constants->general_end >= channels) {
        multiply_general(constants, pixels, x + 2 * pixels, shape, out); /* all of them */
        return;
    }
    if (shape->pairs > 0) {
        multiply(pixels, x, constants + 1, out, shape);
    }
    if ((channels & 1) != 0) {
        const int32_t pair = 8 * shape->quads + 2 * (int32_t)sizeof(nn_dsp_channel);
        multiply_last(pixels, x, (const int8_t *)(constants + 1) + shape->pairs * pair,
                      out + channels - 1, shape);
    }
    nn_dsp_clamp_pixels(out, pixels, channels, shape->stride, &constants->common);
    if (constants->general_first < constants->general_end) {
        multiply_general(constants, pixels, x + 2 * pixels, shape, out);
    }
}
