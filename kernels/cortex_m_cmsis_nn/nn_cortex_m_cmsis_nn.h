/* Adapters to CMSIS-NN, for a user who has it (`--cmsis-nn PATH`): each calls the library's
 * function for one operator, and gives its namesake's bytes (nn.h).
 *
 * They compute whole operators on whole tensors, layer by layer: the library knows no windows, no
 * rings and no parts of a wider tensor's channels. Constants are packed as it wants them
 * (packing.py). What the library cannot do as asked ends in a trap, never in a wrong result: a call
 * that is not whole, a status other than success, more scratch wanted than there is. How much that
 * is the library is asked, here and by the planner (nn_cmsis_nn_ask.h).
 */
#ifndef NN_CORTEX_M_CMSIS_NN_H
#define NN_CORTEX_M_CMSIS_NN_H

#include "nn.h"

/* constants: nn_conv_constants; then int32 of every output channel: biases as the model has them,
 * multipliers, shifts; then (16-byte aligned) the weights, O H W I or H W O. */
void nn_conv2d_s8_cmsis_nn(const nn_conv_geometry *geometry, const void *constants,
                           const nn_view *in, const nn_view *out, const nn_window *window,
                           void *scratch, int32_t scratch_bytes);
int32_t nn_conv2d_s8_cmsis_nn_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                            const nn_view *out);
void nn_depthwise_conv2d_s8_cmsis_nn(const nn_conv_geometry *geometry, const void *constants,
                                     const nn_view *in, const nn_view *out, const nn_window *window,
                                     void *scratch, int32_t scratch_bytes);
int32_t nn_depthwise_conv2d_s8_cmsis_nn_scratch_bytes(const nn_conv_geometry *geometry,
                                                      const nn_view *in, const nn_view *out);

/* Broadcasting falls to nn.h's. */
void nn_add_s8_cmsis_nn(const void *constants, const nn_view *in1, const nn_view *in2,
                        const nn_view *out, const nn_window *window);
void nn_mul_s8_cmsis_nn(const void *constants, const nn_view *in1, const nn_view *in2,
                        const nn_view *out, const nn_window *window);

void nn_avg_pool_s8_cmsis_nn(const nn_pool_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch, int32_t scratch_bytes);
int32_t nn_avg_pool_s8_cmsis_nn_scratch_bytes(const nn_pool_geometry *geometry, const nn_view *in,
                                              const nn_view *out);
void nn_max_pool_s8_cmsis_nn(const nn_pool_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window);

/* constants: of the differences to the largest element, multiplier, shift, and the least that
 * counts. Rows of fewer than 512 elements. */
typedef struct {
    int32_t multiplier, shift, least;
} nn_cmsis_nn_softmax;

void nn_softmax_s8_cmsis_nn(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window);

#endif
