/* Every sum that a layer's channels can have, requantised by a kernel and as LiteRT does it.
 *
 * A file beside this one includes the family's own code, or a model of its instructions, and
 * defines `outputs`: those of `count` successive sums of channel c, biases included. What is called
 * is `layer_wrong`.
 */
#ifndef SUMS_H
#define SUMS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 1024 /* sums at a time */

/* What the packing made, and what it was made from. */
typedef struct {
    const void *block;      /* packed constants */
    const int32_t *biases;  /* of each channel, the input's zero point folded in; */
    const int32_t *factors; /* its multiplier and shift, */
    const double *scales;   /* its real factor; */
    const int32_t *ends;    /* the least and the greatest sum of its int8 inputs; */
    const int32_t *weights; /* the sum of its weights */
    int32_t channels, taps, dense, depthwise;
    int32_t zero_point, low, high; /* of outputs */
    int32_t within;                /* how many steps an output may be off */
} layer;

static void outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out);

/* gemmlowp's, as LiteRT's reference kernels have them. */
static inline int32_t litert_high_multiply(int32_t a, int32_t b) {
    const int64_t product = (int64_t)a * b;
    const int32_t nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
    return a == b && a == INT32_MIN ? INT32_MAX : (int32_t)((product + nudge) / (1LL << 31));
}

static inline int32_t litert_divide(int32_t x, int32_t exponent) {
    const int32_t mask = (int32_t)((1LL << exponent) - 1), remainder = x & mask;
    const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/* With the zero point, which wraps as a sum does, and bounds. */
static inline int8_t litert_clamped(int32_t scaled, int32_t zero_point, int32_t low, int32_t high) {
    const int32_t value = (int32_t)((uint32_t)scaled + (uint32_t)zero_point);
    return (int8_t)(value < low ? low : value > high ? high : value);
}

static void litert_outputs(const layer *l, int32_t c, int32_t first, int32_t count, int8_t *out) {
    const int32_t multiplier = l->factors[2 * c], shift = l->factors[2 * c + 1];
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int32_t zero_point = l->zero_point, low = l->low, high = l->high, dense = l->dense;
    const double scale = l->scales[c];
    for (int32_t i = 0; dense && i < count; i++) {
        const double real = round((first + i) * scale);
        const int32_t whole = (int32_t)(real > 1e6 ? 1e6 : real < -1e6 ? -1e6 : real);
        out[i] = litert_clamped(whole, zero_point, low, high);
    }
    for (int32_t i = 0; !dense && i < count; i++) {
        const int32_t moved = (int32_t)((uint32_t)(first + i) << left);
        const int32_t quotient = litert_high_multiply(moved, multiplier);
        out[i] = litert_clamped(litert_divide(quotient, right), zero_point, low, high);
    }
}

/* Counts the sums that each channel has wrong, in wrong[channel]; example[channel] is one of them.
 * Returns how many sums were compared. */
int64_t layer_wrong(const layer *l, int64_t *wrong, int32_t *example) {
    int8_t found[CHUNK], expected[CHUNK];
    int64_t compared = 0;
    for (int32_t c = 0; c < l->channels; c++) {
        const int64_t end = (int64_t)l->ends[2 * c + 1] + 1;
        wrong[c] = 0;
        for (int64_t first = l->ends[2 * c]; first < end; first += CHUNK) {
            const int32_t count = (int32_t)(end - first < CHUNK ? end - first : CHUNK);
            outputs(l, c, (int32_t)first, count, found);
            litert_outputs(l, c, (int32_t)first, count, expected);
            compared += count;
            if (memcmp(found, expected, (size_t)count) == 0) {
                continue;
            }
            for (int32_t i = 0; i < count; i++) {
                if (abs(found[i] - expected[i]) > l->within) {
                    example[c] = (int32_t)first + i;
                    wrong[c]++;
                }
            }
        }
    }
    return compared;
}

#endif
