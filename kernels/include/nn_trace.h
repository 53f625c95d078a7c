/* A trace build (-DNN_TRACE) hands everything that is computed to nn_trace, as soon as it is. */
#ifndef NN_TRACE_H
#define NN_TRACE_H

#ifdef NN_TRACE
#include <stdint.h>

#include "nn.h"

/* `bytes` bytes of tensor number `tensor`, from its byte `offset` on. */
void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes);

/* The window of a tensor that was just computed, row by row, column by column; `bytes` of an
 * element. Where a ring is shorter than the window, what nothing reads has been written over
 * already. */
static inline void nn_trace_window(uint32_t tensor, const nn_view *view, const nn_window *window,
                                   int32_t bytes) {
    const int32_t left = window->x1 - view->ring_cols, top = window->y1 - view->ring_rows;
    for (int32_t y = top > window->y0 ? top : window->y0; y < window->y1; y++) {
        const int8_t *row = view->data + y % view->ring_rows * view->row_stride;
        for (int32_t x = left > window->x0 ? left : window->x0; x < window->x1; x++) {
            const int32_t pixel = view->channels * bytes;
            const uint32_t offset = (uint32_t)((y * view->width + x) * pixel);
            nn_trace(tensor, offset, row + x % view->ring_cols * view->pixel_stride,
                     (uint32_t)pixel);
        }
    }
}

/* A whole tensor of `bytes` bytes whose pixels of `pixel` bytes lie `pitch` bytes apart. */
static inline void nn_trace_part(uint32_t tensor, const int8_t *data, uint32_t bytes,
                                 uint32_t pixel, uint32_t pitch) {
    for (uint32_t offset = 0; offset < bytes; offset += pixel) {
        nn_trace(tensor, offset, data, pixel);
        data += pitch;
    }
}

#define NN_TRACE_TENSOR(tensor, data, bytes) nn_trace((tensor), 0, (data), (bytes))
#define NN_TRACE_PART(tensor, data, bytes, pixel, pitch)                                           \
    nn_trace_part((tensor), (data), (bytes), (pixel), (pitch))
#define NN_TRACE_WINDOW(tensor, view, window) nn_trace_window((tensor), (view), (window), 1)
#define NN_TRACE_WIDE(tensor, view, window, bytes)                                                 \
    nn_trace_window((tensor), (view), (window), (bytes))
#else
#define NN_TRACE_TENSOR(tensor, data, bytes) ((void)0)
#define NN_TRACE_PART(tensor, data, bytes, pixel, pitch) ((void)0)
#define NN_TRACE_WINDOW(tensor, view, window) ((void)0)
#define NN_TRACE_WIDE(tensor, view, window, bytes) ((void)0)
#endif

#endif
