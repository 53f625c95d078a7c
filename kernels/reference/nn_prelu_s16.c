/* PRELU of int16: elements below 0 are multiplied by alpha, which has bytes and broadcasts. */
#include "nn_pairs.h"

void nn_prelu_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window) {
    const nn_prelu_constants c = *(const nn_prelu_constants *)constants;
    NN_PAIRS(int16_t, int8_t, int16_t, nn_clamp(nn_prelu(&c, a, b), -32768, 32767))
}
