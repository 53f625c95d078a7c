/* FULLY_CONNECTED: eight outputs at a time, one dense layer a pixel. */
#include "nn_riscv.h"
#include "nn_riscv_scalar.h"

#define OUTPUTS 8

#if defined(__riscv)
/* By hand: the compiler moves loads ahead until registers run out. */
#define WEIGHT(tap, c)                                                                             \
    "lb %[k], 8*" #tap "+" #c "(%[w])\n"                                                           \
    "mul %[k], %[k], %[v]\n"                                                                       \
    "add %[s" #c "], %[s" #c "], %[k]\n"
#define TAP(tap)                                                                                   \
    "lb %[v], " #tap "(%[x])\n" WEIGHT(tap, 0) WEIGHT(tap, 1) WEIGHT(tap, 2) WEIGHT(tap, 3)        \
        WEIGHT(tap, 4) WEIGHT(tap, 5) WEIGHT(tap, 6) WEIGHT(tap, 7)
#define LOOP(taps, count)                                                                          \
    __asm volatile("1:\n" taps "addi %[x], %[x], " #count "\n"                                     \
                   "addi %[w], %[w], 8*" #count "\n"                                               \
                   "bne %[x], %[end], 1b"                                                          \
                   : [x] "+r"(x), [w] "+r"(weights), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2),  \
                     [s3] "+r"(s3), [s4] "+r"(s4), [s5] "+r"(s5), [s6] "+r"(s6), [s7] "+r"(s7),    \
                     [v] "=&r"(v), [k] "=&r"(k)                                                    \
                   : [end] "r"(end)                                                                \
                   : "memory")
#else
/* Adds `count` products of each of eight outputs. */
static inline __attribute__((always_inline)) void accumulate(int32_t sums[OUTPUTS], const int8_t *x,
                                                             const int8_t *weights, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = x[i];
        for (int32_t c = 0; c < OUTPUTS; c++) {
            sums[c] += value * weights[i * OUTPUTS + c];
        }
    }
}

#endif

NN_OUTLINE void sum8(int32_t result[OUTPUTS], const int8_t *x, const int8_t *weights,
                     int32_t count) {
    const int8_t *end = x + (count & ~3);
#if defined(__riscv)
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0, v, k;
    if (x != end) {
        LOOP(TAP(0) TAP(1) TAP(2) TAP(3), 4);
    }
    end += count & 3;
    if (x != end) {
        LOOP(TAP(0), 1);
    }
    const int32_t sums[OUTPUTS] = {s0, s1, s2, s3, s4, s5, s6, s7};
#else
    int32_t sums[OUTPUTS] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (; x != end; x += 4, weights += 4 * OUTPUTS) {
        accumulate(sums, x, weights, 4);
    }
    end += count & 3;
    for (; x != end; x++, weights += OUTPUTS) {
        accumulate(sums, x, weights, 1);
    }
#endif
    for (int32_t c = 0; c < OUTPUTS; c++) {
        result[c] = sums[c];
    }
}

void nn_fully_connected_s8_riscv(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch) {
    const nn_conv_constants common = *(const nn_conv_constants *)constants;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const int8_t *first = nn_weights(constants, outputs, sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x), *weights = first;
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t c = 0; c < outputs; c += OUTPUTS, weights += OUTPUTS * inputs) {
                int32_t sums[OUTPUTS];
                sum8(sums, values, weights, inputs);
                for (int32_t i = 0; i < nn_min(OUTPUTS, outputs - c); i++) {
                    result[c + i] = nn_riscv_dense_output(sums[i], channels + c + i, &common);
                }
            }
        }
    }
}
