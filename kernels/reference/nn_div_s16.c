/* DIV of int16, with broadcasting. */
#include "nn_pairs.h"

void nn_div_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window) {
    const nn_div_constants c = *(const nn_div_constants *)constants;
    NN_PAIRS(int16_t, int16_t, int16_t, nn_quotient(&c, a, b))
}
