/* FULLY_CONNECTED: four outputs at a time; weights in words of four outputs, input by input. */
#include "nn_mul32_scale.h"
#include "nn_mul32.h"

#define OUTPUTS 4
#define FLUSH 256 /* words whose bytes two sums of 16 bits hold */

/* Adds input `at`'s products, of the first `wanted` outputs of a word (template). */
static inline __attribute__((always_inline)) void multiply(uint32_t sums[OUTPUTS], const int8_t *x,
                                                           const uint32_t *weights, int32_t at,
                                                           const int32_t wanted) {
    uint32_t four = weights[at];
    const uint32_t value = (uint32_t)nn_mul32_natural(x + at);
    NN_MUL32_NOW(four);
#pragma GCC unroll 4
    for (int32_t i = 0; i < wanted; i++) {
        sums[i] += value * (four >> (8 * i) & 255);
        NN_MUL32_NOW(sums[i]);
    }
}

/* The sums of `wanted` outputs of a block. */
static inline __attribute__((always_inline)) void
sum_block(int32_t result[OUTPUTS], const int8_t *x, const uint32_t *weights, const int8_t *end,
          const int32_t wanted) {
    uint32_t sums[OUTPUTS] = {0, 0, 0, 0};
    for (; end - x >= 4; x += 4, weights += 4) {
#pragma GCC unroll 4
        for (int32_t at = 0; at < 4; at++) {
            multiply(sums, x, weights, at, wanted);
        }
    }
    for (; x != end; x++, weights++) {
        multiply(sums, x, weights, 0, wanted);
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < OUTPUTS; i++) {
        result[i] = (int32_t)sums[i];
    }
}

#define SUM(name, wanted)                                                                          \
    NN_OUTLINE void name(int32_t result[OUTPUTS], const int8_t *x, const uint32_t *weights,        \
                         const int8_t *end) {                                                      \
        sum_block(result, x, weights, end, wanted);                                                \
    }
SUM(sum4, 4)
SUM(sum3, 3)
SUM(sum2, 2)
SUM(sum1, 1)

/* The sum of all inputs as natural bytes. */
NN_OUTLINE uint32_t total(const int8_t *x, const int8_t *end) {
    uint32_t sum = 0;
    while (((uintptr_t)x & 3) == 0 && end - x >= 4) {
        uint32_t even = 0, odd = 0;
        for (int32_t left = nn_min((int32_t)(end - x) >> 2, FLUSH); left > 0; left--, x += 4) {
            const uint32_t word = *(const uint32_t *)(const void *)x ^ NN_MUL32_BYTES;
            even += word & NN_MUL32_PAIRS;
            odd += word >> 8 & NN_MUL32_PAIRS;
        }
        sum += (even & 0xFFFF) + (even >> 16) + (odd & 0xFFFF) + (odd >> 16);
    }
    while (x != end) {
        sum += (uint32_t)nn_mul32_natural(x++);
    }
    return sum;
}

void nn_fully_connected_s8_mul32(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch) {
    typedef void sum(int32_t *, const int8_t *, const uint32_t *, const int8_t *);
    static sum *const blocks[OUTPUTS] = {sum1, sum2, sum3, sum4};
    const nn_conv_constants common = *(const nn_conv_constants *)constants;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const void *first = nn_weights(constants, outputs, sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x), *end = values + inputs;
            const uint32_t *weights = (const uint32_t *)first;
            int8_t *result = nn_out_pixel(out, y, x);
            const int32_t correction = (int32_t)(0U - 128U * total(values, end));
            for (int32_t c = 0; c < outputs; c += OUTPUTS, weights += inputs) {
                const int32_t wanted = nn_min(OUTPUTS, outputs - c);
                int32_t sums[OUTPUTS];
                blocks[wanted - 1](sums, values, weights, end);
                for (int32_t i = 0; i < wanted; i++) {
                    result[c + i] = nn_mul32_dense_output(nn_wrapping_add(sums[i], correction),
                                                          channels + c + i, &common);
                }
            }
        }
    }
}
