/* MAXIMUM of the bytes as they are, with broadcasting; of truth values it is LOGICAL_OR. */
#include "nn_elements.h"

void nn_maximum_s8(const nn_view *in1, const nn_view *in2, const nn_view *out,
                   const nn_window *window) {
    NN_PAIRS(int8_t, int8_t, int8_t, nn_max(a, b))
}
