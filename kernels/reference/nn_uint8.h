/* Kernels of networks that were of uint8, where these compute something else than int8 ones do:
 * filters with a zero point of their own, averages whose halves are rounded up, images enlarged in
 * float32. Constants are those
 * of nn.h's kernels without the input's zero point in their biases; the filter's zero point stands
 * before them, in 16 bytes. */
#ifndef NN_UINT8_H
#define NN_UINT8_H

#include "nn.h"

void nn_conv2d_offset_s8(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                         const nn_view *out, const nn_window *window, void *scratch);
void nn_depthwise_conv2d_offset_s8(const nn_conv_geometry *geometry, const void *constants,
                                   const nn_view *in, const nn_view *out, const nn_window *window,
                                   void *scratch);
void nn_fully_connected_offset_s8(const void *constants, const nn_view *in, const nn_view *out,
                                  const nn_window *window, void *scratch);
void nn_avg_pool_up_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window);
void nn_avg_pool_sums_up_s8(const void *constants, const int32_t *sums, int32_t count,
                            int32_t channels, int8_t *out);

void nn_resize_bilinear_real_s8(const nn_resize_geometry *geometry, const nn_view *in,
                                const nn_view *out, const nn_window *window);

/* The constants behind the filter's zero point. */
static inline const void *nn_behind_offset(const void *constants) {
    return (const int32_t *)constants + 4;
}

/* sum / count with halves rounded up; the sum is one of int8. */
static inline int32_t nn_divide_up(int32_t sum, int32_t count) {
    return (int32_t)(((uint32_t)sum + (uint32_t)count * 128U + (uint32_t)count / 2U) /
                     (uint32_t)count) -
           128;
}

#endif
