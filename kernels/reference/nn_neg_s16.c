/* NEG of int16 as they are: -32768 stays. */
#include "nn_elements.h"

void nn_neg_s16(const nn_view *in, const nn_view *out, const nn_window *window) {
    NN_ELEMENTS(int16_t, int16_t, -value)
}
