/* SQUARED_DIFFERENCE, with broadcasting. */
#include "nn_pairs.h"

void nn_squared_difference_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                              const nn_view *out, const nn_window *window) {
    const nn_squared_difference_constants c = *(const nn_squared_difference_constants *)constants;
    NN_PAIRS(int8_t, int8_t, int8_t, nn_difference_squared(&c, a, b))
}
