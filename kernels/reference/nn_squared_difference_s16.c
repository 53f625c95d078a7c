/* SQUARED_DIFFERENCE of int16, with broadcasting. */
#include "nn_pairs.h"

void nn_squared_difference_s16(const void *constants, const nn_view *in1, const nn_view *in2,
                               const nn_view *out, const nn_window *window) {
    const nn_squared_difference_constants c = *(const nn_squared_difference_constants *)constants;
    NN_PAIRS(int16_t, int16_t, int16_t, nn_difference_squared(&c, a, b))
}
