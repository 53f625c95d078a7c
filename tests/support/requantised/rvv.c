/* Kernels for RISC-V's vectors (nn_rvv.h). */
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

static uint32_t upper(uint32_t a, uint32_t b) {
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* `put` of nn_fully_connected_s8_rvv.c */
static void dense_outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const head *h = (const head *)l->block;
    const int32_t *biases = (const int32_t *)(const void *)(h + 1);
    const uint32_t *multipliers = (const uint32_t *)biases + l->channels + c;
    const uint32_t low = multipliers[l->channels], shift = multipliers[2 * l->channels];
    const uint32_t up = shift >> 8, most = UINT32_MAX >> (up & 31);
    for (int32_t i = 0; i < count; i++) {
        const int32_t sum = (int32_t)((uint32_t)first + (uint32_t)i);
        uint32_t size = sum < 0 ? 0U - (uint32_t)sum : (uint32_t)sum;
        size = (size < most ? size : most) << (up & 31);
        const uint32_t lower = upper(size, low), product = size * *multipliers + lower;
        const uint64_t high = (uint64_t)upper(size, *multipliers) + (product < lower);
        const uint64_t rounded = (high + (1U << ((shift & 31) - 1))) >> (shift & 31);
        const int32_t scaled = rounded > 255 ? 255 : (int32_t)rounded;
        out[i] = narrowed(&h->common, sum < 0 ? -scaled : scaled);
    }
}

static void conv_outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
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

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    if (l->dense) {
        dense_outputs(l, c, first, count, out);
    } else {
        conv_outputs(l, c, first, count, out);
    }
}
