/* Depthwise convolutions: what a call works on, and outputs straight from the input.
 *
 * A run of few outputs uses its columns and its widened weights too seldom to be worth writing them
 * to scratch: they are widened where they are used.
 */
#ifndef NN_DSP_FEW_H
#define NN_DSP_FEW_H

#include "nn_dsp_run.h"

#define NN_DSP_FEW 3 /* outputs of a run that are computed one by one */

/* Puts `count` columns into scratch; `rows`: the kernel's rows of input, `place`: bytes from their
 * starts to the first column's first channel, `step`: from column to column. */
typedef void nn_dsp_fill(uint32_t *to, const int8_t *const rows[], int32_t place, int32_t step,
                         int32_t count);

/* One kernel size. */
typedef struct {
    int32_t size; /* rows, and columns */
    int32_t run;  /* outputs along a row whose columns are in scratch together */
    void (*compute)(const nn_dsp_run *run);
    nn_dsp_fill *fill; /* where no row is padding; or NULL */
} nn_dsp_depthwise_kind;

/* Columns of input that lie one behind the other in memory, and where they go. */
typedef struct {
    uint32_t *to;
    int32_t place; /* bytes from a row's start */
    int32_t count;
} nn_dsp_piece;

/* What a call works on; the row and its piece of columns change. */
typedef struct {
    const nn_dsp_depthwise_kind *kind;
    const nn_dsp_constants *constants;
    const nn_view *in, *out;
    uint32_t *taps, *columns;
    const int8_t *rows[NN_DSP_MAX_ROWS]; /* starts of the column windows; NULL: padding */
    int border;                          /* whether one is NULL */
    int32_t dilation;                    /* columns from tap to tap, and from output to output */
    nn_dsp_piece pieces[2];              /* a column window wraps around once at most */
} nn_dsp_depthwise;

/* The sums of one output of four channels; `columns`: bytes from the rows' starts. */
static inline void nn_dsp_sum_inputs(int32_t sums[NN_DSP_BLOCK], const int8_t *const rows[],
                                     const int32_t *columns, int32_t c, const int8_t *weights,
                                     int32_t size) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t column = 0; column < size; column++) {
        const int32_t place = columns[column] + c;
        int32_t row = 0;
        for (; row + 1 < size; row += 2, weights += 8) {
            uint32_t x[4];
            const uint32_t w0 = nn_load4(weights), w1 = nn_load4(weights + 4);
            nn_dsp_put_two(x, nn_load4(rows[row] + place), nn_load4(rows[row + 1] + place));
            s0 = nn_smlad(x[0], nn_sxtb16(w0), s0);
            s1 = nn_smlad(x[1], nn_sxtb16_ror8(w0), s1);
            s2 = nn_smlad(x[2], nn_sxtb16(w1), s2);
            s3 = nn_smlad(x[3], nn_sxtb16_ror8(w1), s3);
        }
        if (row < size) {
            const uint32_t a = nn_load4(rows[row] + place), w = nn_load4(weights);
            const uint32_t a02 = nn_sxtb16(a), a13 = nn_sxtb16_ror8(a);
            const uint32_t w02 = nn_sxtb16(w), w13 = nn_sxtb16_ror8(w);
            s0 = nn_smlabb(a02, w02, s0);
            s1 = nn_smlabb(a13, w13, s1);
            s2 = nn_smlatt(a02, w02, s2);
            s3 = nn_smlatt(a13, w13, s3);
            weights += 4;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* All channels of one output, all of whose taps meet the input, the first of them column `left`. */
static inline void nn_dsp_compute_one(const nn_dsp_depthwise *d, int32_t left, int8_t *out,
                                      int32_t size) {
    const nn_view *in = d->in;
    const int32_t channels = in->channels, ring = in->ring_cols * in->pixel_stride;
    const int32_t step = d->dilation * in->pixel_stride;
    const int8_t *block = (const int8_t *)(d->constants + 1);
    int32_t columns[NN_DSP_MAX_ROWS];
    int32_t place = nn_column(in, left) * in->pixel_stride;
    for (int32_t i = 0; i < size; i++) {
        columns[i] = place;
        place += step;
        place -= place >= ring ? ring : 0;
    }
    for (int32_t start = 0; start < channels; start += NN_DSP_BLOCK) {
        const int32_t c = nn_min(start, channels - NN_DSP_BLOCK);
        const nn_dsp_channel *channel = (const nn_dsp_channel *)(const void *)block;
        const int general = c >= d->constants->general_first && c < d->constants->general_end;
        int32_t sums[NN_DSP_BLOCK];
        block += NN_DSP_BLOCK * sizeof(nn_dsp_channel);
        nn_dsp_sum_inputs(sums, d->rows, columns, c, block, size);
        block += NN_DSP_BLOCK * size * size;
        for (int32_t i = 0; i < NN_DSP_BLOCK && !general; i++) {
            out[c + i] = (int8_t)nn_dsp_output(sums[i], channel + i);
        }
        if (general) {
            nn_dsp_put_general(out + c, sums, channel, &d->constants->common);
        }
    }
    nn_dsp_clamp(out, channels, d->constants->common.clamp_min, d->constants->common.clamp_max);
}

#endif
