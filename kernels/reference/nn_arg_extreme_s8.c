/* ARG_MAX and ARG_MIN: the place of the first greatest or least element along one axis. */
#include "nn_arith.h"

/* `flip`: 0 for the greatest, -1 for the least, whose complement is the greatest one. */
static int32_t place(const int8_t *in, int32_t stride, int32_t count, int32_t flip) {
    int32_t found = 0, greatest = *in ^ flip;
    for (int32_t i = 1; i < count; i++) {
        const int32_t value = in[i * stride] ^ flip;
        if (value > greatest) {
            greatest = value;
            found = i;
        }
    }
    return found;
}

void nn_arg_extreme_s8(const nn_arg_geometry *geometry, const int8_t *in, int8_t *out) {
    const nn_arg_geometry *g = geometry;
    int32_t *places = (int32_t *)(void *)out;
    for (int32_t o = 0; o < g->outer; o++, in += g->count * g->inner) {
        for (int32_t i = 0; i < g->inner; i++) {
            *places++ = place(in + i, g->inner, g->count, g->flip);
            if (g->wide) {
                *places++ = 0;
            }
        }
    }
}
