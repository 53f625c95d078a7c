/* The inputs of convolutions: taps of a few pixels, widened.
 *
 * Of each row of a pixel's taps the whole quads are widened straight from the input; what is left
 * of all rows ("rest", 0 to 3 bytes each) is collected into quads that come last. That leaves no
 * gaps where channels are few, as in a network's first layer, and costs nothing where they are a
 * multiple of four.
 */
#ifndef NN_DSP_CONV_H
#define NN_DSP_CONV_H

#include "nn_dsp_matmul.h"

/* How the taps of a pixel divide. */
typedef struct {
    int32_t row_bytes, row_quads, rest; /* of one row */
    int32_t rest_quads, quads;          /* of all rests; of all */
} nn_dsp_division;

static inline nn_dsp_division nn_dsp_divide(const nn_conv_geometry *geometry, const nn_view *in) {
    nn_dsp_division d;
    d.row_bytes = geometry->kernel_w * in->channels;
    d.row_quads = d.row_bytes / 4;
    d.rest = d.row_bytes % 4;
    d.rest_quads = (geometry->kernel_h * d.rest + 3) / 4;
    d.quads = geometry->kernel_h * d.row_quads + d.rest_quads;
    return d;
}

/* One row of output. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    nn_dsp_division taps;
    nn_taps rows;       /* that meet the input, */
    const int8_t *data; /* the first of them, */
    int32_t row_step;   /* and what leads to the next, in bytes */
    const int8_t *end;  /* of the ring of rows */
    int32_t zero_point;
    uint32_t *widened;
    int8_t *rests; /* of each pixel, 4 * rest_quads bytes */
    int8_t *line;  /* room for a row of taps of one pixel */
    int joined;    /* the taps of a row lie one behind the other */
} nn_dsp_layer;

/* A few bytes: memcpy would take longer than they do. */
NN_OUTLINE void nn_dsp_copy_few(int8_t *to, const int8_t *from, int32_t bytes) {
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8) {
        const uint32_t a = nn_load4(from), b = nn_load4(from + 4);
        nn_store4(to, a);
        nn_store4(to + 4, b);
        __asm volatile("" : : : "memory"); /* or it would become memcpy */
    }
    if (bytes >= 4) {
        nn_store4(to, nn_load4(from));
        bytes -= 4, to += 4, from += 4;
    }
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
        __asm volatile("" : : : "memory");
    }
}

/* Collects taps of one pixel in one row that do not lie one behind the other. */
NN_OUTLINE void nn_dsp_gather_apart(const nn_dsp_layer *l, const int8_t *row, int32_t left) {
    const nn_view *in = l->in;
    const int32_t channels = in->channels, dilation = l->geometry->dilation_w;
    const nn_taps taps = nn_valid_taps(left, in->width, l->geometry->kernel_w, dilation);
    for (int32_t k = taps.first; k < taps.end; k++) {
        const int8_t *from = row + nn_column(in, left + k * dilation) * in->pixel_stride;
        nn_dsp_copy_few(l->line + k * channels, from, channels);
    }
}

/* Collects the taps of one pixel in one row that meet the input into `line`. */
NN_OUTLINE void nn_dsp_gather(const nn_dsp_layer *l, const int8_t *row, int32_t left) {
    const nn_view *in = l->in;
    const int32_t channels = in->channels;
    const nn_taps taps = nn_valid_taps(left, in->width, l->geometry->kernel_w, 1);
    int32_t run;
    if (!l->joined) {
        nn_dsp_gather_apart(l, row, left);
        return;
    }
    for (int32_t k = taps.first; k < taps.end; k += run) {
        run = nn_run(in, left + k, taps.end - k);
        nn_dsp_copy_few(l->line + k * channels, row + nn_column(in, left + k) * in->pixel_stride,
                        run * channels);
    }
}

/* Takes the rests of a row of `pixels`, which are `step` bytes apart; there is one at least. `to`:
 * where the first pixel's go. */
NN_OUTLINE void nn_dsp_take_rests(const nn_dsp_layer *l, int8_t *to, int32_t pixels,
                                  const int8_t *from, int32_t step) {
    const int32_t rest = l->taps.rest, apart = 4 * l->taps.rest_quads;
#pragma GCC unroll 1
    do {
        to[0] = from[0];
        if (rest > 1) {
            to[1] = from[1];
        }
        if (rest > 2) {
            to[2] = from[2];
        }
        from += step;
        to += apart;
    } while (--pixels > 0);
}

static inline const int8_t *nn_dsp_next_row(const nn_dsp_layer *l, const int8_t *row) {
    const int8_t *next = row + l->row_step;
    return next >= l->end ? next - (l->end - l->in->data) : next;
}

/* Rows of taps that lie one behind the other in the input; `place`: bytes from a row's start. */
NN_OUTLINE void nn_dsp_widen_inside(const nn_dsp_layer *l, uint32_t *x, int32_t pixels,
                                    int32_t place) {
    const int32_t quads = l->taps.row_quads, words = 2 * pixels * quads;
    const int32_t step = l->geometry->stride_w * l->in->pixel_stride;
    const int8_t *row = l->data;
    for (int32_t k = l->rows.first; k < l->rows.end; k++, x += words) {
        const int8_t *from = row + place;
        if (quads > 0) {
            nn_dsp_widen_quads(x, pixels, from, step, quads);
        }
        if (l->taps.rest > 0) {
            nn_dsp_take_rests(l, l->rests + k * l->taps.rest, pixels, from + 4 * quads, step);
        }
        row = nn_dsp_next_row(l, row);
    }
}

/* Whether the `span` columns from `left` on lie one behind the other in the input. */
static inline int nn_dsp_lies_joined(const nn_dsp_layer *l, int32_t left, int32_t span) {
    const nn_view *in = l->in;
    return left >= 0 && left + span <= in->width && l->joined && nn_run(in, left, span) == span;
}

/* What one pixel that meets padding reads of each row. */
typedef struct {
    int32_t first, bytes; /* taps that meet the input: bytes of padding before them, and theirs */
    int32_t place;        /* of the first of them, bytes from a row's start */
    int joined;           /* they lie one behind the other */
} nn_dsp_border;

static inline nn_dsp_border nn_dsp_find_border(const nn_dsp_layer *l, int32_t left) {
    const nn_view *in = l->in;
    const nn_taps taps = nn_valid_taps(left, in->width, l->geometry->kernel_w, 1);
    const int32_t count = taps.end - taps.first;
    nn_dsp_border b = {taps.first * in->channels, count * in->channels, 0, 0};
    if (l->joined && count > 0) {
        b.place = nn_column(in, left + taps.first) * in->pixel_stride;
        b.joined = nn_run(in, left + taps.first, count) == count;
    }
    return b;
}

/* Rows of taps of pixels some of which meet padding or lie beyond the end of the column window.
 * The padding stays in `line` from row to row. */
NN_OUTLINE void nn_dsp_widen_border(const nn_dsp_layer *l, uint32_t *x, int32_t pixels,
                                    int32_t left) {
    const int32_t bytes = 4 * l->taps.row_quads, words = 2 * pixels * l->taps.row_quads;
    for (int32_t p = 0; p < pixels; p++, left += l->geometry->stride_w) {
        const nn_dsp_border b = nn_dsp_find_border(l, left);
        const int whole = b.joined && b.bytes == l->taps.row_bytes;
        const int8_t *row = l->data;
        uint32_t *to = x + p;
        if (!whole) {
            __builtin_memset(l->line, (int)l->zero_point, (size_t)l->taps.row_bytes);
        }
        for (int32_t k = l->rows.first; k < l->rows.end; k++, to += words) {
            const int8_t *from = whole ? row + b.place : l->line;
            if (b.joined && !whole) {
                nn_dsp_copy_few(l->line + b.first, row + b.place, b.bytes);
            } else if (!whole) {
                nn_dsp_gather(l, row, left);
            }
            (void)nn_dsp_widen1(to, pixels, from, bytes);
            if (l->taps.rest > 0) {
                int8_t *rests = l->rests + 4 * p * l->taps.rest_quads;
                nn_dsp_take_rests(l, rests + k * l->taps.rest, 1, from + bytes, 0);
            }
            row = nn_dsp_next_row(l, row);
        }
    }
}

/* Rows [first, end) of taps that meet nothing but padding. */
NN_OUTLINE void nn_dsp_widen_padding(const nn_dsp_layer *l, uint32_t *x, int32_t pixels,
                                     int32_t first, int32_t end) {
    __builtin_memset(l->line, (int)l->zero_point, (size_t)l->taps.row_bytes);
    for (int32_t k = first; k < end && l->taps.rest > 0; k++) {
        nn_dsp_take_rests(l, l->rests + k * l->taps.rest, pixels, l->line, 0);
    }
    (void)nn_dsp_widen_value(x, pixels, l->zero_point, (end - first) * l->taps.row_quads);
}

/* Widens the taps of `pixels`, the first of which begins at column `left`. */
static inline void nn_dsp_widen_inputs(const nn_dsp_layer *l, int32_t pixels, int32_t left) {
    const nn_view *in = l->in;
    const int32_t span = (pixels - 1) * l->geometry->stride_w + l->geometry->kernel_w;
    const int32_t words = 2 * pixels * l->taps.row_quads, rows = l->geometry->kernel_h;
    uint32_t *x = l->widened;
    if (l->rows.first > 0) {
        nn_dsp_widen_padding(l, x, pixels, 0, l->rows.first);
    }
    if (nn_dsp_lies_joined(l, left, span)) {
        nn_dsp_widen_inside(l, x + l->rows.first * words, pixels,
                            nn_column(in, left) * in->pixel_stride);
    } else {
        nn_dsp_widen_border(l, x + l->rows.first * words, pixels, left);
    }
    if (l->rows.end < rows) {
        nn_dsp_widen_padding(l, x + l->rows.end * words, pixels, l->rows.end, rows);
    }
    if (l->taps.rest > 0) {
        const int32_t bytes = 4 * l->taps.rest_quads;
        nn_dsp_widen_quads(x + rows * words, pixels, l->rests, bytes, l->taps.rest_quads);
    }
}

/* `most`: pixels that are computed together. */
static inline void nn_dsp_open_layer(nn_dsp_layer *l, const nn_conv_geometry *g, int32_t zero_point,
                                     const nn_view *in, int32_t most, void *scratch) {
    l->geometry = g;
    l->in = in;
    l->taps = nn_dsp_divide(g, in);
    l->joined = g->kernel_w == 1 || (g->dilation_w == 1 && nn_dense(in));
    l->row_step = g->dilation_h % in->ring_rows * in->row_stride;
    l->end = in->data + in->ring_rows * in->row_stride;
    l->zero_point = zero_point;
    l->widened = nn_dsp_widened(scratch);
    l->rests = (int8_t *)(l->widened + 2 * most * l->taps.quads);
    l->line = l->rests + 4 * most * l->taps.rest_quads;
}

/* Finds the rows of taps of an output row, the first of which is row `top`. */
static inline void nn_dsp_find_input_rows(nn_dsp_layer *l, int32_t top) {
    const nn_conv_geometry *g = l->geometry;
    l->rows = nn_valid_taps(top, l->in->height, g->kernel_h, g->dilation_h);
    l->data = l->in->data;
    if (l->rows.first < l->rows.end) {
        l->data = nn_row(l->in, top + l->rows.first * g->dilation_h);
    }
}

#endif
