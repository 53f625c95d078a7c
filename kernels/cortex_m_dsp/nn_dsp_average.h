/* Averages of up to 185 elements: their sums fit halves of words. */
#ifndef NN_DSP_AVERAGE_H
#define NN_DSP_AVERAGE_H

#include "nn_dsp.h"

/* How pairs of sums, in halves of a word, are divided.
 *
 * sum / count with halves away from zero is floor((sum + count / 2) / count), but for an even count
 * and a negative sum, which is made smaller by one first. With 128 count more it is not negative,
 * and the quotient larger by 128. `inverse` is 2^(16 + shift) / count rounded up, of 16 bits. */
typedef struct {
    uint32_t even, added; /* 1 in each half if the count is even; minus what is added */
    uint32_t inverse;
    int32_t shift;
} nn_dsp_division;

/* count: 2 at least. */
static inline nn_dsp_division nn_dsp_divide_by(int32_t count) {
    const int32_t shift = 16 + 31 - __builtin_clz((uint32_t)count - 1);
    const nn_dsp_division d = {(count & 1) ? 0 : 0x00010001, nn_times2(-(count / 2 + 128 * count)),
                               (((uint32_t)1 << shift) - 1) / (uint32_t)count + 1, shift};
    return d;
}

/* The means of two channels, larger by 128. */
static inline uint32_t nn_dsp_divide(uint32_t sums, const nn_dsp_division *d) {
    const uint32_t from = nn_ssub16(nn_ssub16(sums, (sums >> 15) & d->even), d->added);
    const uint32_t low = ((from & 0xFFFF) * d->inverse) >> d->shift;
    const uint32_t high = ((from >> 16) * d->inverse) >> d->shift;
    return low | high << 16;
}

/* The means of four channels, of the sums of channels 0 and 2 and of 1 and 3. */
static inline uint32_t nn_dsp_means(uint32_t even, uint32_t odd, const nn_dsp_division *d) {
    return (nn_dsp_divide(even, d) | nn_dsp_divide(odd, d) << 8) ^ 0x80808080;
}

#endif
