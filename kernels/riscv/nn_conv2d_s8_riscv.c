/* CONV_2D of one group: four pixels by four output channels at a time, all sums in registers. */
#include "nn_patch.h"
#include "nn_riscv_scalar.h"

#define PIXELS 4
#define CHANNELS 4
#define SHORTEST_RUN 16

/* Adds `taps` products of each pixel and channel. */
static inline __attribute__((always_inline)) void accumulate(int32_t sums[PIXELS][CHANNELS],
                                                             const int8_t *x[PIXELS],
                                                             const int8_t *weights, int32_t pixels,
                                                             int32_t taps) {
    for (int32_t t = 0; t < taps; t++) {
        int32_t value[PIXELS];
        for (int32_t p = 0; p < pixels; p++) {
            value[p] = x[p][t];
        }
        for (int32_t c = 0; c < CHANNELS; c++) {
            const int32_t weight = weights[t * CHANNELS + c];
            for (int32_t p = 0; p < pixels; p++) {
                sums[p][c] += weight * value[p];
            }
        }
    }
}

#if defined(__riscv)
/* The compiler runs out of registers where 27 of 28 suffice: four pixels by hand. */
#define PRODUCT(pixel, sum)                                                                        \
    "mul %[t], %[k], %[v" #pixel "]\n"                                                             \
    "add %[" #sum "], %[" #sum "], %[t]\n"
#define WEIGHT(tap, c, s0, s1, s2, s3)                                                             \
    "lb %[k], 4*" #tap "+" #c "(%[w])\n" PRODUCT(0, s0) PRODUCT(1, s1) PRODUCT(2, s2) PRODUCT(3, s3)
#define TAP(tap)                                                                                   \
    "lb %[v0], " #tap "(%[x0])\n"                                                                  \
    "lb %[v1], " #tap "(%[x1])\n"                                                                  \
    "lb %[v2], " #tap "(%[x2])\n"                                                                  \
    "lb %[v3], " #tap "(%[x3])\n" WEIGHT(tap, 0, s00, s10, s20, s30)                               \
        WEIGHT(tap, 1, s01, s11, s21, s31) WEIGHT(tap, 2, s02, s12, s22, s32)                      \
            WEIGHT(tap, 3, s03, s13, s23, s33)
#define LOOP(taps, count)                                                                          \
    __asm volatile(                                                                                \
        "1:\n" taps "addi %[x0], %[x0], " #count "\n"                                              \
        "addi %[x1], %[x1], " #count "\n"                                                          \
        "addi %[x2], %[x2], " #count "\n"                                                          \
        "addi %[x3], %[x3], " #count "\n"                                                          \
        "addi %[w], %[w], 4*" #count "\n"                                                          \
        "lw %[t], %[end]\n"                                                                        \
        "bne %[x0], %[t], 1b"                                                                      \
        : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [w] "+r"(weights),           \
          [s00] "+r"(s00), [s01] "+r"(s01), [s02] "+r"(s02), [s03] "+r"(s03), [s10] "+r"(s10),     \
          [s11] "+r"(s11), [s12] "+r"(s12), [s13] "+r"(s13), [s20] "+r"(s20), [s21] "+r"(s21),     \
          [s22] "+r"(s22), [s23] "+r"(s23), [s30] "+r"(s30), [s31] "+r"(s31), [s32] "+r"(s32),     \
          [s33] "+r"(s33), [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [v3] "=&r"(v3),         \
          [k] "=&r"(k), [t] "=&r"(t)                                                               \
        : [end] "m"(end)                                                                           \
        : "memory")

static inline __attribute__((always_inline)) void
sum_runs4(int32_t sums[PIXELS][CHANNELS], const nn_runs *runs, const int8_t *weights) {
    const int8_t *run = runs->first;
    int32_t s00 = sums[0][0], s01 = sums[0][1], s02 = sums[0][2], s03 = sums[0][3];
    int32_t s10 = sums[1][0], s11 = sums[1][1], s12 = sums[1][2], s13 = sums[1][3];
    int32_t s20 = sums[2][0], s21 = sums[2][1], s22 = sums[2][2], s23 = sums[2][3];
    int32_t s30 = sums[3][0], s31 = sums[3][1], s32 = sums[3][2], s33 = sums[3][3];
    int32_t v0, v1, v2, v3, k, t;
    for (int32_t i = runs->count; i > 0; i--) {
        const int8_t *x0 = run, *x1 = x0 + runs->step, *x2 = x1 + runs->step;
        const int8_t *x3 = x2 + runs->step, *end = run + (runs->bytes & ~3);
        if (x0 != end) {
            LOOP(TAP(0) TAP(1) TAP(2) TAP(3), 4);
        }
        if ((runs->bytes & 3) != 0) {
            end = run + runs->bytes;
            LOOP(TAP(0), 1);
        }
        run = nn_next_run(runs, run);
    }
    const int32_t all[PIXELS][CHANNELS] = {
        {s00, s01, s02, s03}, {s10, s11, s12, s13}, {s20, s21, s22, s23}, {s30, s31, s32, s33}};
    for (int32_t p = 0; p < PIXELS; p++) {
        for (int32_t c = 0; c < CHANNELS; c++) {
            sums[p][c] = all[p][c];
        }
    }
}
#endif

/* The sums of `pixels` and the four channels whose weights these are, over all runs. */
static inline __attribute__((always_inline)) void sum_runs(int32_t sums[PIXELS][CHANNELS],
                                                           const nn_runs *runs, int32_t pixels,
                                                           const int8_t *weights) {
    const int8_t *run = runs->first;
#if defined(__riscv)
    if (pixels == PIXELS) {
        sum_runs4(sums, runs, weights);
        return;
    }
#endif
    for (int32_t i = runs->count; i > 0; i--) {
        const int8_t *x[PIXELS] = {run, run, run, run}, *end = run + (runs->bytes & ~3);
        for (int32_t p = 1; p < pixels; p++) {
            x[p] = x[p - 1] + runs->step;
        }
        while (x[0] != end) {
            accumulate(sums, x, weights, pixels, 4);
            for (int32_t p = 0; p < pixels; p++) {
                x[p] += 4;
            }
            weights += 4 * CHANNELS;
        }
        end += runs->bytes & 3;
        while (x[0] != end) {
            accumulate(sums, x, weights, pixels, 1);
            for (int32_t p = 0; p < pixels; p++) {
                x[p]++;
            }
            weights += CHANNELS;
        }
        run = nn_next_run(runs, run);
    }
}

/* One block of four channels of `pixels`; `count`: those that exist. */
static inline __attribute__((always_inline)) void
compute(const nn_riscv_head *head, const nn_riscv_channel *channels, const int8_t *weights,
        const nn_runs *runs, int32_t pixels, int8_t *out, int32_t stride, int32_t count) {
    int32_t sums[PIXELS][CHANNELS];
    for (int32_t c = 0; c < CHANNELS; c++) {
        for (int32_t p = 0; p < pixels; p++) {
            sums[p][c] = channels[c].bias;
        }
    }
    sum_runs(sums, runs, pixels, weights);
    const int32_t low = head->common.clamp_min, high = head->common.clamp_max;
    const int odd = head->mode != NN_RISCV_PLAIN;
    if (count == CHANNELS && head->mode != NN_RISCV_GENERAL) {
        for (int32_t c = 0; c < CHANNELS; c++) {
            const nn_riscv_channel k = channels[c];
            for (int32_t p = 0; p < pixels; p++) {
                out[p * stride + c] =
                    nn_riscv_output(sums[p][c], k.multiplier, k.exponent, k.offset, odd, low, high);
            }
        }
        return;
    }
    int32_t kept[PIXELS * CHANNELS];
    for (int32_t c = 0; c < CHANNELS; c++) {
        for (int32_t p = 0; p < pixels; p++) {
            kept[p * CHANNELS + c] = sums[p][c];
        }
    }
#pragma GCC unroll 1
    for (int32_t i = 0; i < count * pixels; i++) {
        const int32_t c = i / pixels, p = i % pixels, sum = kept[p * CHANNELS + c];
        const nn_riscv_channel *k = channels + c;
        out[p * stride + c] =
            head->mode == NN_RISCV_GENERAL
                ? nn_riscv_general(sum, k, &head->common)
                : nn_riscv_output(sum, k->multiplier, k->exponent, k->offset, odd, low, high);
    }
}

/* `pixels` of all output channels. */
#define TILE(name, pixels)                                                                         \
    NN_OUTLINE void name(const nn_riscv_head *head, const nn_runs *runs, int8_t *out,              \
                         int32_t channels) {                                                       \
        const nn_riscv_channel *channel = nn_riscv_channels(head);                                 \
        const int32_t blocks = (channels + CHANNELS - 1) / CHANNELS;                               \
        const int8_t *weights = (const int8_t *)(channel + CHANNELS * blocks);                     \
        for (int32_t c = 0; c < channels; c += CHANNELS) {                                         \
            compute(head, channel + c, weights, runs, pixels, out + c, channels,                   \
                    nn_min(CHANNELS, channels - c));                                               \
            weights += runs->count * runs->bytes * CHANNELS;                                       \
        }                                                                                          \
    }

TILE(tile4, 4)
TILE(tile3, 3)
TILE(tile2, 2)
TILE(tile1, 1)

static void tile(const void *constants, const nn_runs *runs, int32_t pixels, int8_t *out,
                 int32_t channels) {
    const nn_riscv_head *head = (const nn_riscv_head *)constants;
    if (pixels == 4) {
        tile4(head, runs, out, channels);
    } else if (pixels == 3) {
        tile3(head, runs, out, channels);
    } else if (pixels == 2) {
        tile2(head, runs, out, channels);
    } else {
        tile1(head, runs, out, channels);
    }
}

void nn_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch) {
    nn_patch_walk(geometry, constants, in, out, window, (int8_t *)scratch, tile, PIXELS,
                  SHORTEST_RUN);
}
