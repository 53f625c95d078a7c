/* PRELU: elements below the zero point are multiplied by alpha, which broadcasts. */
#include "nn_pairs.h"

void nn_prelu_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                 const nn_window *window) {
    const nn_prelu_constants c = *(const nn_prelu_constants *)constants;
    NN_PAIRS(int8_t, int8_t, int8_t, nn_clamp(nn_prelu(&c, a, b), -128, 127))
}
