/* FULLY_CONNECTED: four outputs at a time; weights in words of four outputs, input by input. */
#include "nn_mul32.h"
#include "nn_mul32_scale.h"

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
#if defined(__ARM_ARCH_6M__)
/* Two products at once: see nn_conv2d_s8_mul32.c. */
#define PAIR(word, product, upper)                                                                 \
    "muls " word ", %[value], " word "\n"                                                          \
    "add %[" product "], " word "\n"                                                               \
    "lsrs " word ", " word ", #16\n"                                                               \
    "add %[" upper "], " word "\n"
#define INPUT(at)                                                                                  \
    "ldrb %[value], [%[x], #" at "]\n"                                                             \
    "eors %[value], %[sign]\n"                                                                     \
    "ldm %[w]!, {%[odd]}\n"                                                                        \
    "movs %[even], %[mask]\n"                                                                      \
    "ands %[even], %[odd]\n"                                                                       \
    "lsrs %[odd], %[odd], #8\n"                                                                    \
    "ands %[odd], %[mask]\n" PAIR("%[even]", "s0", "s2") PAIR("%[odd]", "s1", "s3")

NN_OUTLINE void sum4(int32_t result[OUTPUTS], const int8_t *x, const uint32_t *weights,
                     const int8_t *end) {
    uint32_t sums[OUTPUTS] = {0, 0, 0, 0};
    const int8_t *const fours = x + ((end - x) & ~3);
    if (x != fours) {
        uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, value, even, odd;
        __asm(".syntax unified\n"
              "1:\n" INPUT("0") INPUT("1") INPUT("2") INPUT("3") "adds %[x], #4\n"
                                                                 "cmp %[x], %[fours]\n"
                                                                 "bne 1b\n"
              : [x] "+l"(x), [w] "+l"(weights), [s0] "+h"(s0), [s1] "+h"(s1), [s2] "+h"(s2),
                [s3] "+h"(s3), [value] "=&l"(value), [even] "=&l"(even), [odd] "=&l"(odd)
              : [mask] "l"(NN_MUL32_PAIRS), [sign] "l"(0x80U), [fours] "h"(fours)
              : "cc", "memory");
        sums[0] = s0 - (s2 << 16);
        sums[1] = s1 - (s3 << 16);
        sums[2] = s2;
        sums[3] = s3;
    }
    for (; x != end; x++, weights++) {
        multiply(sums, x, weights, 0, OUTPUTS);
    }
    for (int32_t i = 0; i < OUTPUTS; i++) {
        result[i] = (int32_t)sums[i];
    }
}
#else
SUM(sum4, 4)
#endif
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
