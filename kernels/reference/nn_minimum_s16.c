/* MINIMUM of int16 as they are, with broadcasting. */
#include "nn_elements.h"

void nn_minimum_s16(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window) {
    NN_PAIRS(int16_t, int16_t, int16_t, nn_min(a, b))
}
