/* EQUAL, LESS and their like, with broadcasting: a byte 0 or 1 an element. */
#include "nn_pairs.h"

void nn_compare_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const nn_compare_constants c = *(const nn_compare_constants *)constants;
    NN_PAIRS(int8_t, int8_t, int8_t, nn_compared(&c, a, b))
}
