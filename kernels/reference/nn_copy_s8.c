/* Copies a box of elements from one layout to another, ascending: a concatenation's part may lie
 * above the place where it goes to. */
#include "nn_arith.h"

/* The innermost dimension. */
static inline void copy_line(const int8_t *in, int32_t in_stride, int8_t *out, int32_t out_stride,
                             int32_t count) {
    if (in_stride == 1 && out_stride == 1) {
        NN_MEMMOVE(out, in, (size_t)count);
        return;
    }
    for (; count > 0; count--, in += in_stride, out += out_stride) {
        *out = *in;
    }
}

void nn_copy_s8(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    const nn_copy_geometry *g = geometry;
    const int32_t last = g->rank - 1;
    int32_t index[NN_MAX_RANK] = {0};
    for (int32_t d = 0; d <= last; d++) {
        if (g->size[d] == 0) {
            return;
        }
    }
    if (last < 0) {
        *out = *in;
        return;
    }
    for (;;) {
        int32_t d = last - 1;
        copy_line(in, g->in_stride[last], out, g->out_stride[last], g->size[last]);
        for (; d >= 0; d--) {
            in += g->in_stride[d];
            out += g->out_stride[d];
            if (++index[d] < g->size[d]) {
                break;
            }
            in -= g->size[d] * g->in_stride[d];
            out -= g->size[d] * g->out_stride[d];
            index[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}
