/* Kernels for RISC-V's vectors (nn_rvv.h); their dense layers are the plain ones'. */
#include "vectors.h"

enum { PLAIN, ODD, GENERAL }; /* as in nn_rvv.h, which only a compiler with vectors reads */

typedef struct {
    nn_conv_constants common;
    int32_t mode, inputs, reserved[2];
} head;

static int32_t general(int32_t sum, int32_t multiplier, int32_t shift) {
    const int32_t moved = (int32_t)((uint32_t)sum << nn_max(shift, 0)), down = -nn_min(shift, 0);
    const int32_t q = high_doubled(moved, multiplier);
    return shifted(q + ((q >> 31) & (-down >> 31)), down);
}

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const head *h = (const head *)l->block;
    const int32_t *biases = (const int32_t *)(const void *)(h + 1);
    const int32_t multiplier = biases[l->channels + c], shift = biases[2 * l->channels + c];
    /* A channel that has one output only has other constants, and no weights. */
    const int constant = biases[c] != l->biases[c] || multiplier != l->factors[2 * c];
    for (int32_t i = 0; i < count; i++) {
        const int32_t sum = constant ? biases[c] : first + i;
        int32_t q;
        if (h->mode == GENERAL) {
            q = general(sum, multiplier, shift);
        } else {
            q = high_doubled(sum, multiplier);
            q = shifted(h->mode == PLAIN ? q : q + (q >> 31), -shift);
        }
        out[i] = narrowed(&h->common, q);
    }
}
