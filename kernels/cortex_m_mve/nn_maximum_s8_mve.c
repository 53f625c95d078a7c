/* MAXIMUM, with broadcasting, Helium. */
#define NN_MVE_CHOOSE "vmax.s8"

#include "nn_mve_chosen.h"

static inline int8x16_t nn_mve_chosen(int8x16_t a, int8x16_t b) {
    return vmaxq_s8(a, b);
}

void nn_maximum_s8_mve(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window) {
    nn_mve_choose_all(in1, in2, out, window);
}
