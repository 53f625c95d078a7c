/* MAXIMUM of the bytes as they are, with broadcasting; of truth values it is LOGICAL_OR. */
#include "nn_pairs.h"

static inline int8_t larger(const void *constants, int32_t a, int32_t b) {
    (void)constants;
    return (int8_t)nn_max(a, b);
}

void nn_maximum_s8(const nn_view *in1, const nn_view *in2, const nn_view *out,
                   const nn_window *window) {
    nn_for_pairs(larger, NULL, in1, in2, out, window);
}
