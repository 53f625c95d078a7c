/* SOFTMAX over the channels, in the fixed-point arithmetic of the reference kernel: Qm.n is a
 * signed number with m integer and n fractional bits. */
#include "nn_arith.h"

#define SUM_SHIFT 12             /* from Q0.31 to Q12.19 */
#define SUM_LIMIT (1 << 28)      /* no probability reaches half a step any more */
#define Q2_ONE (1 << 29)         /* Q2.29, as the next two */
#define Q2_48_OVER_17 1515870810 /* round(48/17 * 2^29) */
#define Q2_MINUS_32_OVER_17                                                                        \
    (-1010580540) /* round(-32/17 * 2^29); the sign matters to the rounding */

static inline int32_t saturating_shift(int32_t value, int32_t bits) {
    const int32_t limit = INT32_MAX >> bits;
    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit - 1 ? INT32_MIN : value * (1 << bits);
}

/* 1/sum as a Q0.31 factor; *exponent is what a factor * exponential (Q0.31) is then shifted by to
 * become a multiple of 1/256. Three of Newton's steps, from 48/17 - 32/17 * d for d in [1/2, 1). */
static int32_t reciprocal(int32_t sum, int32_t *exponent) {
    int32_t bits = 1, half, x;
    while (bits < 31 && sum >> bits != 0) {
        bits++;
    }
    half = (int32_t)(((uint32_t)sum << (32 - bits)) >> 1);
    x = Q2_48_OVER_17 + nn_high_multiply(half, Q2_MINUS_32_OVER_17);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t error = Q2_ONE - nn_high_multiply(half, x);
        x += saturating_shift(nn_high_multiply(x, error), 2);
    }
    *exponent = bits + 3;
    return saturating_shift(x, 1);
}

static void softmax(const int32_t *exponentials, const int8_t *in, int8_t *out, int32_t count) {
    int32_t largest = -128, sum = 0, factor, exponent;
    for (int32_t i = 0; i < count; i++) {
        largest = nn_max(largest, in[i]);
    }
    for (int32_t i = 0; i < count; i++) {
        sum = nn_min(sum + nn_rounding_shift(exponentials[largest - in[i]], SUM_SHIFT), SUM_LIMIT);
    }
    if (sum == SUM_LIMIT) {
        __builtin_memset(out, -128, (size_t)count);
        return;
    }
    factor = reciprocal(sum, &exponent);
    for (int32_t i = 0; i < count; i++) {
        const int32_t scaled = nn_high_multiply(factor, exponentials[largest - in[i]]);
        out[i] = (int8_t)(nn_min(nn_rounding_shift(scaled, exponent), 255) - 128);
    }
}

void nn_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    const nn_softmax_constants *c = (const nn_softmax_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            softmax(c->exponentials, nn_pixel(in, y, x), nn_pixel(out, y, x), out->channels);
        }
    }
}
