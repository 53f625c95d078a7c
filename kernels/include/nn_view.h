/* Short ways to write the views that emitted code needs. */
#ifndef NN_VIEW_H
#define NN_VIEW_H

#include "nn.h"

/* A whole tensor of `height` rows, `width` columns, `channels` channels. */
static inline nn_view nn_whole(const int8_t *data, int32_t height, int32_t width,
                               int32_t channels) {
    const nn_view view = {data, width * channels, channels, height,  width,
                          0,    height,           width,    channels};
    return view;
}

/* Channels [first, first + channels) of a view, as a view of their own. */
static inline nn_view nn_part(const nn_view *whole, int32_t first, int32_t channels) {
    nn_view part = *whole;
    part.data += first;
    part.channels = channels;
    return part;
}

/* An operand that repeats itself over an output of `height` rows and `width` columns wherever its
 * own dimension is 1. */
static inline nn_view nn_repeated(const int8_t *data, int32_t own_height, int32_t own_width,
                                  int32_t channels, int32_t height, int32_t width) {
    const int32_t stride = own_height == 1 ? 0 : own_width * channels;
    const nn_view view = {data, stride, channels, own_height, own_width,
                          0,    height, width,    channels};
    return view;
}

/* The same of tensors whose elements have `bytes` bytes. */
static inline nn_view nn_whole_wide(const int8_t *data, int32_t height, int32_t width,
                                    int32_t channels, int32_t bytes) {
    const nn_view view = {
        data,    width * channels * bytes, channels * bytes, height, width, 0, height, width,
        channels};
    return view;
}

static inline nn_view nn_part_wide(const nn_view *whole, int32_t first, int32_t channels,
                                   int32_t bytes) {
    return nn_part(whole, first * bytes, channels);
}

static inline nn_view nn_repeated_wide(const int8_t *data, int32_t own_height, int32_t own_width,
                                       int32_t channels, int32_t height, int32_t width,
                                       int32_t bytes) {
    const int32_t stride = own_height == 1 ? 0 : own_width * channels * bytes;
    const nn_view view = {data,   stride, channels * bytes, own_height, own_width, 0,
                          height, width,  channels};
    return view;
}

static inline int32_t nn_least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static inline int32_t nn_most(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* A tensor in the weight image. */
static inline const int8_t *nn_constant(const void *data) {
    return (const int8_t *)data;
}

/* Rows of an output of `height` rows that can be made of the first `made` of `input_height` rows:
 * row y reads the rows below y * stride + stride - offset. May be below 0. */
static inline int32_t nn_ready(int32_t made, int32_t input_height, int32_t height, int32_t offset,
                               int32_t stride) {
    return made >= input_height ? height : (made + offset) / stride;
}

#endif
