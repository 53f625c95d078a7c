/* Kernels for Helium: nn_mve_pairs.S, nn_mve_depthwise_out.h, nn_fully_connected_s8_mve.c. */
#include "vectors.h"

enum { PLAIN, ODD, GENERAL }; /* as in nn_mve.h, which only an Arm compiler reads */

typedef struct {
    nn_conv_constants common;
    int32_t mode, reserved[3];
} head;

static int32_t conv(const head *h, const int32_t *four, int32_t i, int32_t sum) {
    const int32_t multiplier = four[i], shift = four[4 + i];
    int32_t q;
    if (h->mode == GENERAL) {
        q = high_doubled((int32_t)((uint32_t)sum << nn_max(shift, 0)), multiplier);
        q += (q & nn_min(shift, 0)) >> 31;
        return shifted(q, -nn_min(shift, 0));
    }
    q = high_doubled(sum, multiplier);
    return shifted(h->mode == ODD ? add_high_floor(q, q, 1) : q, -shift);
}

static int32_t depthwise(const head *h, const int32_t *numbers, int32_t sum) {
    const int32_t multiplier = numbers[1], shift = numbers[2];
    int32_t q;
    if (h->mode == GENERAL) {
        q = high_doubled((int32_t)((uint32_t)sum << nn_max(shift, 0)), multiplier);
        return shifted(add_high_floor(q, q, shift < 0), -nn_min(shift, 0));
    }
    q = add_high_doubled(sum, sum, multiplier);
    return shifted(add_high_floor(q, q, shift < 0), -shift);
}

/* The way of nn_mve_depthwise_column.S */
static int32_t column(const int32_t *numbers, int32_t sum) {
    const int32_t shift = numbers[2];
    const uint32_t q = (uint32_t)sum + (uint32_t)high_doubled(sum, numbers[1]);
    return shifted((int32_t)(q + (uint32_t)(((int32_t)q & shift) >> 31)), -shift);
}

static uint32_t high_product(uint32_t a, uint32_t b) {
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

static int8_t dense(const head *h, const int32_t *four, int32_t i, int32_t sum) {
    const uint32_t size = sum < 0 ? 0U - (uint32_t)sum : (uint32_t)sum;
    const uint32_t multiplier = (uint32_t)four[i], low = (uint32_t)four[8 + i];
    const int32_t shift = four[4 + i] + 1;
    uint32_t high = high_product(size, multiplier);
    if (h->mode == GENERAL) {
        const nn_dense_channel plain = {0, four[i], four[4 + i], (int32_t)(low >> 16)};
        return nn_dense_output(sum, &plain, &h->common);
    }
    if (h->mode == ODD) {
        const uint32_t more = high_product(size, low), all = size * multiplier + more;
        high += more > all;
    }
    high = (uint32_t)(((uint64_t)high + ((uint64_t)1 << (-shift - 1))) >> -shift);
    return narrowed(&h->common, sum < 0 ? -(int32_t)high : (int32_t)high);
}

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const head *h = (const head *)l->block;
    const int32_t *factors = (const int32_t *)(const void *)(h + 1);
    const int32_t vectors = (l->taps + 15) / 16;
    /* behind an empty vector, the weights of each channel and its numbers */
    const int32_t *numbers = factors + 4 + c * 4 * (vectors + 1) + 4 * vectors;
    for (int32_t i = 0; i < count; i++) {
        if (l->dense) {
            out[i] = dense(h, factors + c / 4 * 12, c % 4, first + i);
        } else if (l->depthwise) {
            out[i] = narrowed(&h->common, depthwise(h, numbers, first + i));
            if (h->mode != GENERAL && out[i] != narrowed(&h->common, column(numbers, first + i))) {
                out[i] = (int8_t)~out[i]; /* both have to be right */
            }
        } else {
            out[i] = narrowed(&h->common, conv(h, factors + c / 4 * 8, c % 4, first + i));
        }
    }
}
