/* Depthwise convolutions of one kernel size: how their rows are walked.
 *
 * Four channels ("block") of a row are computed at a time: their columns are brought into scratch
 * (nn_dsp_columns.h), and a run of outputs is computed from there (nn_dsp_run.h), which meets no
 * border. Runs of few outputs are computed from the input itself (nn_dsp_few.h).
 *
 * Packed constants: nn_dsp_constants; for each block 4 nn_dsp_channel, then its weights as int8.
 * Where the channels are no multiple of 4, the last block is moved back to end with them.
 */
#ifndef NN_DSP_DEPTHWISE_H
#define NN_DSP_DEPTHWISE_H

#include "nn_dsp_few.h"

static inline int32_t nn_dsp_depthwise_bytes(const nn_dsp_depthwise_kind *kind, int32_t stride_w,
                                             int32_t out_width) {
    const int32_t columns = (nn_min(out_width, kind->run) - 1) * stride_w + kind->size;
    return 4 * nn_dsp_column_words(kind->size) * (columns + kind->size);
}

/* Finds the pieces of `count` columns from `left` on, and puts padding around them. */
static inline void nn_dsp_find_columns(nn_dsp_depthwise *d, int32_t left, int32_t count) {
    const nn_view *in = d->in;
    const int32_t words = nn_dsp_column_words(d->kind->size), apart = d->dilation;
    const uint32_t padding = nn_times2(d->constants->common.input_zero_point);
    const nn_taps inside = nn_valid_taps(left, in->width, count, apart);
    const int32_t all = inside.end - inside.first, start = left + inside.first * apart;
    const int32_t place = all > 0 ? nn_column(in, start) : 0;
    const int32_t run = nn_min(all, (in->ring_cols - place + apart - 1) / apart);
    const int32_t rest = all - run;
    uint32_t *const first = d->columns + inside.first * words;
    uint32_t *const stop = d->columns + count * words;
    d->pieces[0].to = first;
    d->pieces[0].place = place * in->pixel_stride;
    d->pieces[0].count = run;
    d->pieces[1].to = first + run * words;
    d->pieces[1].place = rest > 0 ? nn_column(in, start + run * apart) * in->pixel_stride : 0;
    d->pieces[1].count = rest;
    for (uint32_t *to = d->columns; to < first; to++) {
        *to = padding;
    }
    for (uint32_t *to = d->columns + inside.end * words; to < stop; to++) {
        *to = padding;
    }
}

/* Puts a block's columns into scratch; `c`: its first channel. */
static inline void nn_dsp_fill_block(const nn_dsp_depthwise *d, int32_t c) {
    const int32_t step = d->in->pixel_stride * d->dilation;
    for (int32_t i = 0; i < 2; i++) {
        const nn_dsp_piece *piece = &d->pieces[i];
        const int32_t place = piece->place + c;
        if (piece->count == 0) {
            continue;
        }
        if (d->border || d->kind->fill == NULL) {
            nn_dsp_fill_rows(piece->to, d->rows, place, step, piece->count, d->kind->size,
                             nn_times4(d->constants->common.input_zero_point));
        } else {
            d->kind->fill(piece->to, d->rows, place, step, piece->count);
        }
    }
}

/* All channels of `count` outputs, whose columns have been found. */
static inline void nn_dsp_compute_columns(const nn_dsp_depthwise *d, int8_t *out, int32_t count,
                                          int32_t stride) {
    const nn_dsp_depthwise_kind *kind = d->kind;
    const int32_t size = kind->size, words = nn_dsp_column_words(size);
    const int32_t channels = d->in->channels, step = d->out->pixel_stride * d->dilation;
    const int8_t *block = (const int8_t *)(d->constants + 1);
    nn_dsp_run run = {d->columns, d->taps, NULL, out, NULL, 4 * words * (stride - size), step};
    for (int32_t start = 0; start < channels; start += NN_DSP_BLOCK) {
        const int32_t c = nn_min(start, channels - NN_DSP_BLOCK);
        run.channels = (const nn_dsp_channel *)(const void *)block;
        run.out = out + c;
        run.end = run.out + count * step;
        block += NN_DSP_BLOCK * sizeof(nn_dsp_channel);
        block = nn_dsp_widen_taps(d->taps, block, size * size);
        nn_dsp_fill_block(d, c);
        if (c >= d->constants->general_first && c < d->constants->general_end) {
            nn_dsp_general_run(&run, size, &d->constants->common);
        } else {
            kind->compute(&run);
        }
    }
    nn_dsp_clamp_pixels(out, count, channels, step, &d->constants->common);
}

static inline void nn_dsp_find_rows(nn_dsp_depthwise *d, int32_t top, int32_t dilation) {
    d->border = 0;
    for (int32_t i = 0; i < d->kind->size; i++) {
        const int32_t row = top + i * dilation;
        const int inside = row >= 0 && row < d->in->height;
        d->rows[i] = inside ? nn_row(d->in, row) : NULL;
        d->border |= !inside;
    }
}

/* Every `dilation`-th output of a row from column x on, below column `end`. */
static inline void nn_dsp_depthwise_row(nn_dsp_depthwise *d, const nn_conv_geometry *geometry,
                                        int32_t y, int32_t x, int32_t end) {
    const int32_t stride = geometry->stride_w, apart = d->dilation, size = d->kind->size;
    for (int32_t count; x < end; x += count * apart) {
        const int32_t left = x * stride - geometry->pad_left;
        int8_t *const out = nn_out_pixel(d->out, y, x);
        count = (nn_run(d->out, x, end - x) + apart - 1) / apart;
        count = nn_min(d->kind->run, count);
        if (count <= NN_DSP_FEW && !d->border && left >= 0 &&
            left + (size - 1) * apart < d->in->width) {
            nn_dsp_compute_one(d, left, out, size);
            count = 1;
            continue;
        }
        nn_dsp_find_columns(d, left, (count - 1) * stride + size);
        nn_dsp_compute_columns(d, out, count, stride);
    }
}

/* Where there is a distance between taps along a row, the stride is 1. */
static inline void nn_dsp_depthwise_rows(const nn_dsp_depthwise_kind *kind,
                                         const nn_conv_geometry *geometry, const void *constants,
                                         const nn_view *in, const nn_view *out,
                                         const nn_window *window, void *scratch) {
    nn_dsp_depthwise d;
    d.kind = kind;
    d.constants = (const nn_dsp_constants *)constants;
    d.in = in;
    d.out = out;
    d.dilation = geometry->dilation_w;
    d.taps = (uint32_t *)scratch;
    d.columns = d.taps + nn_dsp_column_words(kind->size) * kind->size;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_dsp_find_rows(&d, y * geometry->stride_h - geometry->pad_top, geometry->dilation_h);
        for (int32_t i = 0; i < d.dilation; i++) {
            nn_dsp_depthwise_row(&d, geometry, y, window->x0 + i, window->x1);
        }
    }
}

#endif
