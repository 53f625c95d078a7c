/* Depthwise convolutions of any window: where the taps of an output pixel lie. */
#ifndef NN_DSP_TAPS_H
#define NN_DSP_TAPS_H

#include "nn_dsp.h"

/* A tap's place: its address, or its offset from the first tap. */
typedef uintptr_t nn_dsp_place;

#define NN_DSP_PLACE_BYTES 8 /* of scratch; on a machine of 64 bits all are used */

/* Bytes of scratch for a pixel of padding and the places of so many taps. */
static inline int32_t nn_dsp_places_bytes(int32_t channels, int32_t taps) {
    return (channels + 7) / 8 * 8 + NN_DSP_PLACE_BYTES * taps;
}

/* A pixel of padding; returns what lies behind it. */
static inline nn_dsp_place *nn_dsp_fill_padding(void *padding, int32_t channels, int32_t value) {
    int8_t *to = (int8_t *)padding;
    __builtin_memset(to, value, (size_t)channels);
    return (nn_dsp_place *)(void *)(to + (channels + 7) / 8 * 8);
}

static inline nn_dsp_place nn_dsp_address(const int8_t *at) {
    return (nn_dsp_place)at;
}

static inline const int8_t *nn_dsp_at_place(nn_dsp_place base, nn_dsp_place place) {
    return (const int8_t *)(base + place);
}

/* The addresses of all taps of a pixel whose first tap is (top, left); padding's where they meet
 * none of the input. */
NN_OUTLINE void nn_dsp_find_taps(const nn_conv_geometry *g, const nn_view *in, int32_t top,
                                 int32_t left, const int8_t *padding, nn_dsp_place *to) {
    const int32_t ring = in->ring_cols * in->pixel_stride;
    const int32_t step = g->dilation_w % in->ring_cols * in->pixel_stride;
    const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
    int32_t start = 0;
    if (columns.first < columns.end) {
        start = nn_column(in, left + columns.first * g->dilation_w) * in->pixel_stride;
    }
#pragma GCC unroll 1
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        const int32_t y = top + ky * g->dilation_h;
        int32_t kx = 0, place = start;
        if (y >= 0 && y < in->height && columns.first < columns.end) {
            const nn_dsp_place row = nn_dsp_address(nn_row(in, y));
#pragma GCC unroll 1
            for (; kx < columns.first; kx++) {
                *to++ = nn_dsp_address(padding);
            }
#pragma GCC unroll 1
            for (; kx < columns.end; kx++) {
                *to++ = row + (nn_dsp_place)place;
                place += step;
                place -= place >= ring ? ring : 0;
            }
        }
#pragma GCC unroll 1
        for (; kx < g->kernel_w; kx++) {
            *to++ = nn_dsp_address(padding);
        }
    }
}

#endif
