/* MINIMUM of the bytes as they are, with broadcasting; of truth values it is LOGICAL_AND. */
#include "nn_elements.h"

void nn_minimum_s8(const nn_view *in1, const nn_view *in2, const nn_view *out,
                   const nn_window *window) {
    NN_PAIRS(int8_t, int8_t, int8_t, nn_min(a, b))
}
