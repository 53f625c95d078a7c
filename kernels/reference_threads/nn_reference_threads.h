/* The plain kernels, each call shared by the threads of the core: see nn_split.h. */
#ifndef NN_REFERENCE_THREADS_H
#define NN_REFERENCE_THREADS_H

#include "nn.h"

void nn_conv2d_s8_threads(const nn_conv_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window,
                          void *scratch);
void nn_depthwise_conv2d_s8_threads(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch);
void nn_transpose_conv2d_s8_threads(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, const nn_window *window,
                                    void *scratch);
void nn_avg_pool_s8_threads(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8_threads(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window);
void nn_resize_nearest_s8_threads(const nn_resize_geometry *geometry, const nn_view *in,
                                  const nn_view *out, const nn_window *window);
void nn_resize_bilinear_s8_threads(const nn_resize_geometry *geometry, const nn_view *in,
                                   const nn_view *out, const nn_window *window);
void nn_add_s8_threads(const void *constants, const nn_view *in1, const nn_view *in2,
                       const nn_view *out, const nn_window *window);
void nn_mul_s8_threads(const void *constants, const nn_view *in1, const nn_view *in2,
                       const nn_view *out, const nn_window *window);
void nn_prelu_s8_threads(const void *constants, const nn_view *in, const nn_view *alpha,
                         const nn_view *out, const nn_window *window);
void nn_lut_s8_threads(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_softmax_s8_threads(const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window);
void nn_fully_connected_s8_threads(const void *constants, const nn_view *in, const nn_view *out,
                                   const nn_window *window, void *scratch);

#endif
