/* CONV_2D of one group: four pixels by four output channels at a time, all sums in registers. */
#include "nn_patch.h"
#include "nn_riscv.h"
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
                sums[p][c] = nn_wrapping_add(sums[p][c], weight * value[p]);
            }
        }
    }
}

/* The sums of `pixels` and the four channels whose weights these are, over all runs. */
static inline __attribute__((always_inline)) void sum_runs(int32_t sums[PIXELS][CHANNELS],
                                                           const nn_runs *runs, int32_t pixels,
                                                           const int8_t *weights) {
    const int8_t *run = runs->first;
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

/* Where a block's outputs go: `count` channels of pixels that are `stride` bytes apart. */
typedef struct {
    const nn_riscv_head *head;
    const nn_riscv_channel *channels;
    int8_t *out;
    int32_t stride, count;
} place;

/* All outputs of a whole block; `odd`: some may be below the zero point. */
static inline __attribute__((always_inline)) void
put_block(const place *to, int32_t sums[PIXELS][CHANNELS], int32_t pixels, int odd) {
    const int32_t low = to->head->common.clamp_min, high = to->head->common.clamp_max;
    const int32_t stride = to->stride;
    const nn_riscv_channel *channels = to->channels;
    int8_t *out = to->out;
#pragma GCC unroll 4
    for (int32_t c = 0; c < CHANNELS; c++) {
        const nn_riscv_channel k = channels[c];
        int8_t *pixel = out + c;
#pragma GCC unroll 4
        for (int32_t p = 0; p < pixels; p++, pixel += stride) {
            *pixel =
                nn_riscv_output(sums[p][c], k.multiplier, k.exponent, k.offset, odd, low, high);
        }
    }
}

/* The outputs of a block that lacks channels, or whose constants nothing is folded into. */
NN_OUTLINE void put_rest(const place *to, int32_t sums[PIXELS][CHANNELS], int32_t pixels) {
    const int32_t low = to->head->common.clamp_min, high = to->head->common.clamp_max;
    const int odd = to->head->mode != NN_RISCV_PLAIN;
    for (int32_t c = 0; c < to->count; c++) {
        const nn_riscv_channel *k = to->channels + c;
        for (int32_t p = 0; p < pixels; p++) {
            to->out[p * to->stride + c] =
                to->head->mode == NN_RISCV_GENERAL
                    ? nn_riscv_general(sums[p][c], k, &to->head->common)
                    : nn_riscv_output(sums[p][c], k->multiplier, k->exponent, k->offset, odd, low,
                                      high);
        }
    }
}

static inline __attribute__((always_inline)) void
put(const place *to, int32_t sums[PIXELS][CHANNELS], int32_t pixels) {
    if (to->count == CHANNELS && to->head->mode == NN_RISCV_PLAIN) {
        put_block(to, sums, pixels, 0);
    } else if (to->count == CHANNELS && to->head->mode == NN_RISCV_ODD) {
        put_block(to, sums, pixels, 1);
    } else {
        int32_t kept[PIXELS][CHANNELS];
        for (int32_t p = 0; p < pixels; p++) {
            for (int32_t c = 0; c < CHANNELS; c++) {
                kept[p][c] = sums[p][c];
            }
        }
        put_rest(to, kept, pixels);
    }
}

/* Clang before 17 does not find the registers, and GCC takes no more than 30 operands: both compute
 * as other machines do. */
#if defined(__riscv) && defined(__clang_major__) && __clang_major__ >= 17
#define BY_HAND 1
#else
#define BY_HAND 0
#endif

#if BY_HAND
#if __riscv_xlen == 64
#define LOAD_ADDRESS "ld"
#define STORE_ADDRESS "sd"
#else
#define LOAD_ADDRESS "lw"
#define STORE_ADDRESS "sw"
#endif
/* The compiler runs out of registers where 27 of 28 suffice: two to four pixels by hand. */
#define PRODUCT(pixel, sum)                                                                        \
    "mul %[t], %[k], %[v" #pixel "]\n"                                                             \
    "add %[" #sum "], %[" #sum "], %[t]\n"
#define PRODUCTS2(c) PRODUCT(0, s0##c) PRODUCT(1, s1##c)
#define PRODUCTS3(c) PRODUCTS2(c) PRODUCT(2, s2##c)
#define PRODUCTS4(c) PRODUCTS3(c) PRODUCT(3, s3##c)
#define LOAD(pixel) "lb %[v" #pixel "], \\n(%[x" #pixel "])\n"
#define LOADS2 LOAD(0) LOAD(1)
#define LOADS3 LOADS2 LOAD(2)
#define LOADS4 LOADS3 LOAD(3)
#define WEIGHT(c, products) "lb %[k], 4*\\n+" #c "(%[w])\n" products(c)
/* A macro of the assembler's, because C limits the length of strings. */
#define DEFINE_TAP(loads, weights) ".macro nn_tap n\n" loads weights ".endm\n"
#define WEIGHTS(products)                                                                          \
    WEIGHT(0, products) WEIGHT(1, products) WEIGHT(2, products) WEIGHT(3, products)
#define TAP(tap) "nn_tap " #tap "\n"
#define MOVE(pixel, count) "addi %[x" #pixel "], %[x" #pixel "], " #count "\n"
#define MOVES2(count) MOVE(0, count) MOVE(1, count)
#define MOVES3(count) MOVES2(count) MOVE(2, count)
#define MOVES4(count) MOVES3(count) MOVE(3, count)
/* Repeats `taps`, the next `count` of each pixel, up to those at `end`. */
#define LOOP(label, taps, moves, count)                                                            \
    label ":\n" taps moves(count) "addi %[w], %[w], 4*" #count "\n" LOAD_ADDRESS " %[t], %[end]\n" \
                                  "bne %[x0], %[t], " label "b\n"

#define LOOP_OF_4(moves) LOOP("2", TAP(0) TAP(1) TAP(2) TAP(3), moves, 4)
#define LOOP_OF_1(moves) LOOP("4", TAP(0), moves, 1)

#define ADD_RUNS(loads, products, moves)                                                           \
    __asm volatile(                                                                                \
        DEFINE_TAP(loads, products) "1:\n" /* a run */                                             \
        LOAD_ADDRESS " %[x0], %[run]\n"                                                            \
                                    "lw %[t], %[step]\n"                                           \
                                    "lw %[k], %[quads]\n"                                          \
                                    "add %[x1], %[x0], %[t]\n"                                     \
                                    "add %[x2], %[x1], %[t]\n"                                     \
                                    "add %[x3], %[x2], %[t]\n"                                     \
                                    "beqz %[k], 3f\n"                                              \
                                    "add %[k], %[k], %[x0]\n" STORE_ADDRESS                        \
                                    " %[k], %[end]\n" LOOP_OF_4(                                   \
                                        moves) "3:\n"                                              \
                                               "lw %[k], %[odd]\n"                                 \
                                               "beqz %[k], 5f\n"                                   \
                                               "add %[k], %[k], %[x0]\n" STORE_ADDRESS             \
                                               " %[k], %[end]\n" LOOP_OF_1(                        \
                                                   moves) "5:\n" /* the next */                    \
                                                          "lw %[t], %[left]\n"                     \
                                                          "addi %[t], %[t], -1\n"                  \
                                                          "beqz %[t], 7f\n"                        \
                                                          "sw %[t], %[left]\n" LOAD_ADDRESS        \
                                                          " %[x0], %[run]\n"                       \
                                                          "lw %[t], %[row_step]\n" LOAD_ADDRESS    \
                                                          " %[k], %[ring_end]\n"                   \
                                                          "add %[x0], %[x0], %[t]\n"               \
                                                          "bltu %[x0], %[k], 6f\n"                 \
                                                          "lw %[t], %[ring]\n"                     \
                                                          "sub %[x0], %[x0], %[t]\n"               \
                                                          "6:\n" STORE_ADDRESS " %[x0], %[run]\n"  \
                                                          "j 1b\n"                                 \
                                                          "7:\n"                                   \
                                                          ".purgem nn_tap"                         \
        : [s00] "+r"(s00), [s01] "+r"(s01), [s02] "+r"(s02), [s03] "+r"(s03), [s10] "+r"(s10),     \
          [s11] "+r"(s11), [s12] "+r"(s12), [s13] "+r"(s13), [s20] "+r"(s20), [s21] "+r"(s21),     \
          [s22] "+r"(s22), [s23] "+r"(s23), [s30] "+r"(s30), [s31] "+r"(s31), [s32] "+r"(s32),     \
          [s33] "+r"(s33), [w] "+r"(weights), [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2),      \
          [x3] "=&r"(x3), [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [v3] "=&r"(v3),          \
          [k] "=&r"(k), [t] "=&r"(t), [end] "=m"(end), [left] "+m"(left), [run] "+m"(run)          \
        : [step] "m"(step), [quads] "m"(quads), [odd] "m"(odd), [row_step] "m"(row_step),          \
          [ring_end] "m"(ring_end), [ring] "m"(ring)                                               \
        : "memory")

/* One block of four channels of `pixels`, 2 to 4. */
static inline __attribute__((always_inline)) void by_hand(const nn_runs *runs, int32_t pixels,
                                                          const int8_t *weights, const place *to) {
    const nn_riscv_channel *k4 = to->channels;
    const int32_t step = runs->step, quads = runs->bytes & ~3, odd = runs->bytes & 3;
    const int32_t row_step = runs->row_step, ring = runs->ring;
    const int8_t *run = runs->first, *ring_end = runs->end, *end;
    int32_t left = runs->count;
    int32_t s00 = k4[0].bias, s01 = k4[1].bias, s02 = k4[2].bias, s03 = k4[3].bias;
    int32_t s10 = s00, s11 = s01, s12 = s02, s13 = s03, s20 = s00, s21 = s01, s22 = s02, s23 = s03;
    int32_t s30 = s00, s31 = s01, s32 = s02, s33 = s03;
    int32_t v0, v1, v2, v3, k, t;
    const int8_t *x0, *x1, *x2, *x3;
    if (pixels == 4 && to->count == 1) {
        ADD_RUNS(LOADS4, WEIGHT(0, PRODUCTS4), MOVES4);
    } else if (pixels == 4) {
        ADD_RUNS(LOADS4, WEIGHTS(PRODUCTS4), MOVES4);
    } else if (pixels == 3) {
        ADD_RUNS(LOADS3, WEIGHTS(PRODUCTS3), MOVES3);
    } else {
        ADD_RUNS(LOADS2, WEIGHTS(PRODUCTS2), MOVES2);
    }
    int32_t sums[PIXELS][CHANNELS] = {
        {s00, s01, s02, s03}, {s10, s11, s12, s13}, {s20, s21, s22, s23}, {s30, s31, s32, s33}};
    put(to, sums, pixels);
}
#endif

/* One block of four channels of `pixels`. */
static inline __attribute__((always_inline)) void compute(const nn_runs *runs, int32_t pixels,
                                                          const int8_t *weights, const place *to) {
    int32_t sums[PIXELS][CHANNELS];
#if BY_HAND
    if (pixels > 1) {
        by_hand(runs, pixels, weights, to);
        return;
    }
#endif
    for (int32_t c = 0; c < CHANNELS; c++) {
        for (int32_t p = 0; p < pixels; p++) {
            sums[p][c] = to->channels[c].bias;
        }
    }
    sum_runs(sums, runs, pixels, weights);
    put(to, sums, pixels);
}

/* `pixels` of all output channels. */
#define TILE(name, pixels)                                                                         \
    NN_OUTLINE void name(const void *constants, const nn_runs *runs, int8_t *out,                  \
                         int32_t channels) {                                                       \
        const nn_riscv_head *head = (const nn_riscv_head *)constants;                              \
        const nn_riscv_channel *channel = nn_riscv_channels(head);                                 \
        const int32_t blocks = (channels + CHANNELS - 1) / CHANNELS;                               \
        const int8_t *weights = (const int8_t *)(channel + CHANNELS * blocks);                     \
        const int32_t size = runs->count * runs->bytes * CHANNELS, stride = runs->out_step;        \
        for (int32_t c = 0; c < channels; c += CHANNELS, weights += size) {                        \
            const place to = {head, channel + c, out + c, stride, nn_min(CHANNELS, channels - c)}; \
            compute(runs, pixels, weights, &to);                                                   \
        }                                                                                          \
    }

TILE(tile4, 4)
TILE(tile3, 3)
TILE(tile2, 2)
TILE(tile1, 1)

void nn_conv2d_s8_riscv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch) {
    static nn_tile *const tiles[PIXELS] = {tile1, tile2, tile3, tile4};
    nn_patch_walk(geometry, constants, in, out, window, (int8_t *)scratch, tiles, PIXELS,
                  SHORTEST_RUN);
}

int32_t nn_conv2d_s8_riscv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                         const nn_view *out) {
    return nn_patch_bytes(geometry, in, out, PIXELS);
}
