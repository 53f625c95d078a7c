/* CONV_2D of one group: four pixels by two output channels at a time, all sums in registers.
 *
 * A tile's inputs are brought into quads first, once for all output channels: four taps of the
 * first pixel in a word, the same of the others behind it, then the next four taps. Weights lie in
 * words of two taps of two channels: both of the first channel, then both of the second. */
#include "nn_mul32.h"
#include "nn_mul32_scale.h"
#include "nn_patch.h"

#define PIXELS 4
#define CHANNELS 2
#define SHORTEST_RUN 16
#define NEVER 0x7FFFFFFF
#define FLUSH 256 /* words whose bytes two sums of 16 bits hold */

/* What tiles get in the place of constants: nn_patch_walk reads the first member. */
typedef struct {
    nn_conv_constants common;
    const nn_mul32_head *head;
    uint32_t *quads;
} job;

/* ---- inputs -------------------------------------------------------------------------------- */

/* Takes `words` words of a pixel's taps to every fourth word of `to`; gives their bytes' sum. */
static inline __attribute__((always_inline)) int32_t take(uint32_t *to, const int8_t *from,
                                                          int32_t words, int aligned) {
    uint32_t even = 0, odd = 0;
    for (; words > 0; words--, from += 4, to += PIXELS) {
        const uint8_t *b = (const uint8_t *)from;
        const uint32_t word =
            aligned ? *(const uint32_t *)(const void *)from
                    : b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        const uint32_t natural = word ^ NN_MUL32_BYTES;
        *to = natural;
        even += natural & NN_MUL32_PAIRS;
        odd += natural >> 8 & NN_MUL32_PAIRS;
    }
    return (int32_t)((even & 0xFFFF) + (even >> 16) + (odd & 0xFFFF) + (odd >> 16));
}

NN_OUTLINE int32_t take_aligned(uint32_t *to, const int8_t *from, int32_t words) {
    return take(to, from, words, 1);
}

NN_OUTLINE int32_t take_loose(uint32_t *to, const int8_t *from, int32_t words) {
    return take(to, from, words, 0);
}

/* The last one to three bytes, the others of their word being 0. */
NN_MUL32_ONCE int32_t take_rest(uint32_t *to, const int8_t *from, int32_t bytes) {
    int32_t sum = 0;
    uint32_t word = 0;
    for (int32_t i = 0; i < bytes; i++) {
        const int32_t natural = nn_mul32_natural(from + i);
        sum += natural;
        word |= (uint32_t)natural << (8 * i);
    }
    *to = word;
    return sum;
}

/* Brings a tile's inputs into quads; `sums`: of each pixel's, less what they add to a sum. */
NN_OUTLINE void take_tile(const nn_runs *runs, uint32_t *quads, int32_t sums[PIXELS],
                          int32_t pixels) {
    const int32_t words = runs->bytes >> 2;
    for (int32_t p = 0; p < pixels; p++) {
        const int8_t *run = runs->first;
        uint32_t *to = quads + p;
        int32_t sum = 0;
        for (int32_t i = runs->count; i > 0; i--) {
            const int8_t *from = run + p * runs->step;
            const int aligned = ((uintptr_t)from & 3) == 0;
            for (int32_t left = words; left > 0;) {
                const int32_t now = nn_min(left, FLUSH);
                sum += aligned ? take_aligned(to, from, now) : take_loose(to, from, now);
                from += 4 * now;
                to += PIXELS * now;
                left -= now;
            }
            if ((runs->bytes & 3) != 0) {
                sum += take_rest(to, from, runs->bytes & 3);
            }
            run = nn_next_run(runs, run);
        }
        sums[p] = (int32_t)(0U - 128U * (uint32_t)sum);
    }
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* sums[2 * pixel + channel] of `pixels` and two channels, over the quads up to `end`. */
static inline __attribute__((always_inline)) void sum_quads(int32_t *sums, const uint8_t *x,
                                                            const uint32_t *weights,
                                                            const uint8_t *end, int32_t pixels) {
    uint32_t s[PIXELS][CHANNELS] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    for (; x != end; x += 4 * PIXELS, weights += 2) {
#pragma GCC unroll 4
        for (int32_t t = 0; t < 4; t++) {
            const uint32_t two = weights[t >> 1] >> (t & 1) * 8;
            const uint32_t first = two & 255, second = two >> 16 & 255;
#pragma GCC unroll 4
            for (int32_t p = 0; p < pixels; p++) {
                s[p][0] += x[4 * p + t] * first;
                s[p][1] += x[4 * p + t] * second;
            }
        }
    }
    for (int32_t p = 0; p < pixels; p++) {
        sums[2 * p] = (int32_t)s[p][0];
        sums[2 * p + 1] = (int32_t)s[p][1];
    }
}

NN_OUTLINE void sum1(int32_t *sums, const uint8_t *x, const uint32_t *weights, const uint8_t *end) {
    sum_quads(sums, x, weights, end, 1);
}

NN_OUTLINE void sum2(int32_t *sums, const uint8_t *x, const uint32_t *weights, const uint8_t *end) {
    sum_quads(sums, x, weights, end, 2);
}

#if defined(__XTENSA_CALL0_ABI__)
/* The compiler runs out of registers where all 15 suffice. a2: sums, later scratch; a3: x; a4:
 * weights; a5, on the stack: end. Sums: a8 to a15; a6, a7: a tap's weights; a0: a word of them. */
void nn_mul32_sum4(int32_t *sums, const uint8_t *x, const uint32_t *weights, const uint8_t *end)
    __attribute__((visibility("hidden")));
/* Macros of the assembler's, because C limits the length of strings. */
__asm(".macro nn_mac at, s0, s1\n"
      "l8ui a5, a3, \\at\n"
      "mull a2, a5, a6\n"
      "add.n \\s0, \\s0, a2\n"
      "mull a5, a5, a7\n"
      "add.n \\s1, \\s1, a5\n"
      ".endm\n"
      ".macro nn_tap tap, at\n"
      "extui a6, a0, \\at, 8\n"
      "extui a7, a0, \\at + 16, 8\n"
      "nn_mac \\tap, a8, a9\n"
      "nn_mac \\tap + 4, a10, a11\n"
      "nn_mac \\tap + 8, a12, a13\n"
      "nn_mac \\tap + 12, a14, a15\n"
      ".endm\n");
__asm(".section .text.nn_mul32_sum4, \"ax\", @progbits\n"
      ".balign 4\n"
      ".global nn_mul32_sum4\n"
      ".hidden nn_mul32_sum4\n"
      ".type nn_mul32_sum4, @function\n"
      "nn_mul32_sum4:\n"
      "addi a1, a1, -32\n"
      "s32i.n a0, a1, 0\n"
      "s32i.n a12, a1, 4\n"
      "s32i.n a13, a1, 8\n"
      "s32i.n a14, a1, 12\n"
      "s32i.n a15, a1, 16\n"
      "s32i.n a2, a1, 20\n"
      "s32i.n a5, a1, 24\n"
      "movi.n a8, 0\n"
      "movi.n a9, 0\n"
      "movi.n a10, 0\n"
      "movi.n a11, 0\n"
      "movi.n a12, 0\n"
      "movi.n a13, 0\n"
      "movi.n a14, 0\n"
      "movi.n a15, 0\n"
      "1:\n"
      "l32i.n a0, a4, 0\n"
      "nn_tap 0, 0\n"
      "nn_tap 1, 8\n"
      "l32i.n a0, a4, 4\n"
      "addi.n a4, a4, 8\n"
      "nn_tap 2, 0\n"
      "nn_tap 3, 8\n"
      "l32i.n a5, a1, 24\n"
      "addi a3, a3, 16\n"
      "bne a3, a5, 1b\n"
      "l32i.n a2, a1, 20\n"
      "s32i.n a8, a2, 0\n"
      "s32i.n a9, a2, 4\n"
      "s32i.n a10, a2, 8\n"
      "s32i.n a11, a2, 12\n"
      "s32i.n a12, a2, 16\n"
      "s32i.n a13, a2, 20\n"
      "s32i.n a14, a2, 24\n"
      "s32i.n a15, a2, 28\n"
      "l32i.n a0, a1, 0\n"
      "l32i.n a12, a1, 4\n"
      "l32i.n a13, a1, 8\n"
      "l32i.n a14, a1, 12\n"
      "l32i.n a15, a1, 16\n"
      "addi a1, a1, 32\n"
      "ret.n\n"
      ".size nn_mul32_sum4, . - nn_mul32_sum4\n"
      ".purgem nn_mac\n"
      ".purgem nn_tap\n"
      ".text\n");
#elif defined(__ARM_ARCH_6M__)
/* Two products at once: a word of weights has one tap of both channels, 16 bits apart, and the
 * product with an input has both products, which are natural and below 2^16. Their upper halves are
 * summed up, and so are the products themselves, modulo 2^32: less the upper sum in its place, that
 * is the lower sum. r0: x; r1: weights; r5: a mask of both bytes; products: r6 to r9; upper halves:
 * r10, r11, r12, lr. */
void nn_mul32_sum4(int32_t *sums, const uint8_t *x, const uint32_t *weights, const uint8_t *end)
    __attribute__((visibility("hidden")));
__asm(".macro nn_mac at, product, upper\n"
      "ldrb r4, [r0, #\\at]\n"
      "muls r4, r3, r4\n"
      "add \\product, r4\n"
      "lsrs r4, r4, #16\n"
      "add \\upper, r4\n"
      ".endm\n"
      ".macro nn_tap tap\n"
      "nn_mac \\tap, r6, r10\n"
      "nn_mac \\tap + 4, r7, r11\n"
      "nn_mac \\tap + 8, r8, r12\n"
      "nn_mac \\tap + 12, r9, lr\n"
      ".endm\n"
      ".macro nn_two_taps tap, at\n"
      "ldr r2, [r1, #\\at]\n"
      "movs r3, r5\n"
      "ands r3, r2\n"
      "nn_tap \\tap\n"
      "lsrs r3, r2, #8\n"
      "ands r3, r5\n"
      "nn_tap \\tap + 1\n"
      ".endm\n"
      ".macro nn_put product, upper\n"
      "mov r1, \\upper\n"
      "lsls r2, r1, #16\n"
      "mov r3, \\product\n"
      "subs r3, r3, r2\n"
      "str r3, [r0]\n"
      "str r1, [r0, #4]\n"
      "adds r0, #8\n"
      ".endm\n");
__asm(".syntax unified\n"
      ".section .text.nn_mul32_sum4, \"ax\", %progbits\n"
      ".balign 4\n"
      ".global nn_mul32_sum4\n"
      ".hidden nn_mul32_sum4\n"
      ".thumb_func\n"
      ".type nn_mul32_sum4, %function\n"
      "nn_mul32_sum4:\n"
      "push {r0, r3, r4, r5, r6, r7, lr}\n"
      "mov r4, r8\n"
      "mov r5, r9\n"
      "mov r6, r10\n"
      "mov r7, r11\n"
      "push {r4, r5, r6, r7}\n"
      "movs r0, r1\n"
      "movs r1, r2\n"
      "ldr r5, 3f\n"
      "movs r6, #0\n"
      "movs r7, #0\n"
      "mov r8, r6\n"
      "mov r9, r6\n"
      "mov r10, r6\n"
      "mov r11, r6\n"
      "mov r12, r6\n"
      "mov lr, r6\n"
      "1:\n"
      "nn_two_taps 0, 0\n"
      "nn_two_taps 2, 4\n"
      "ldr r3, [sp, #20]\n"
      "adds r1, #8\n"
      "adds r0, #16\n"
      "cmp r0, r3\n"
      "bne 1b\n"
      "ldr r0, [sp, #16]\n"
      "nn_put r6, r10\n"
      "nn_put r7, r11\n"
      "nn_put r8, r12\n"
      "nn_put r9, lr\n"
      "pop {r4, r5, r6, r7}\n"
      "mov r8, r4\n"
      "mov r9, r5\n"
      "mov r10, r6\n"
      "mov r11, r7\n"
      "pop {r0, r3, r4, r5, r6, r7, pc}\n"
      ".balign 4\n"
      "3: .word 0x00ff00ff\n"
      ".size nn_mul32_sum4, . - nn_mul32_sum4\n"
      ".purgem nn_mac\n"
      ".purgem nn_tap\n"
      ".purgem nn_two_taps\n"
      ".purgem nn_put\n"
      ".text\n");
#elif defined(__ARM_ARCH_7M__)
/* All 14 registers. r1: x; r2: weights; r3: end; sums: r4 to r11; r0, r12: a tap's weights; lr: an
 * input. */
void nn_mul32_sum4(int32_t *sums, const uint8_t *x, const uint32_t *weights, const uint8_t *end)
    __attribute__((visibility("hidden")));
__asm(".macro nn_mac at, s0, s1\n"
      "ldrb lr, [r1, #\\at]\n"
      "mla \\s0, lr, r0, \\s0\n"
      "mla \\s1, lr, r12, \\s1\n"
      ".endm\n"
      ".macro nn_tap tap, at\n"
      "ldrb r0, [r2, #\\at]\n"
      "ldrb r12, [r2, #\\at + 2]\n"
      "nn_mac \\tap, r4, r5\n"
      "nn_mac \\tap + 4, r6, r7\n"
      "nn_mac \\tap + 8, r8, r9\n"
      "nn_mac \\tap + 12, r10, r11\n"
      ".endm\n");
__asm(".syntax unified\n"
      ".section .text.nn_mul32_sum4, \"ax\", %progbits\n"
      ".balign 4\n"
      ".global nn_mul32_sum4\n"
      ".hidden nn_mul32_sum4\n"
      ".thumb_func\n"
      ".type nn_mul32_sum4, %function\n"
      "nn_mul32_sum4:\n"
      "push {r0, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
      "movs r4, #0\n"
      "movs r5, #0\n"
      "movs r6, #0\n"
      "movs r7, #0\n"
      "mov r8, r4\n"
      "mov r9, r4\n"
      "mov r10, r4\n"
      "mov r11, r4\n"
      "1:\n"
      "nn_tap 0, 0\n"
      "nn_tap 1, 1\n"
      "nn_tap 2, 4\n"
      "nn_tap 3, 5\n"
      "adds r1, #16\n"
      "adds r2, #8\n"
      "cmp r1, r3\n"
      "bne 1b\n"
      "ldr r0, [sp]\n"
      "stmia r0, {r4, r5, r6, r7, r8, r9, r10, r11}\n"
      "pop {r0, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
      ".size nn_mul32_sum4, . - nn_mul32_sum4\n"
      ".purgem nn_mac\n"
      ".purgem nn_tap\n"
      ".text\n");
#else
NN_OUTLINE void nn_mul32_sum4(int32_t *sums, const uint8_t *x, const uint32_t *weights,
                              const uint8_t *end) {
    sum_quads(sums, x, weights, end, 4);
}
#endif

/* ---- outputs ------------------------------------------------------------------------------- */

/* A channel of `pixels`; sums are eight bytes apart. */
static inline __attribute__((always_inline)) void
put(const nn_mul32_head *head, const nn_mul32_channel *channel, const int32_t *sums,
    const int32_t *inputs, int8_t *out, int32_t step, int32_t pixels, int odd, int wide) {
    const nn_mul32_factor f =
        nn_mul32_split(channel->multiplier, channel->shift, head->common.output_zero_point);
    const int32_t low = head->common.clamp_min, high = head->common.clamp_max;
    const int32_t bias = channel->bias;
    for (const int32_t *end = inputs + pixels; inputs != end; out += step, sums += CHANNELS) {
        const int32_t value = nn_wrapping_add(nn_wrapping_add(*sums, bias), *inputs++);
        *out = (int8_t)nn_clamp(nn_mul32_scale(value, &f, odd, wide), low, high);
    }
}

#define PUT(name, odd, wide)                                                                       \
    NN_OUTLINE void name(const nn_mul32_head *head, const nn_mul32_channel *channel,               \
                         const int32_t *sums, const int32_t *inputs, int8_t *out, int32_t step,    \
                         int32_t pixels) {                                                         \
        put(head, channel, sums, inputs, out, step, pixels, odd, wide);                            \
    }
PUT(put_plain, 0, 0)
PUT(put_odd, 1, 0)
PUT(put_plain_wide, 0, 1)
PUT(put_odd_wide, 1, 1)

NN_MUL32_ONCE void put_general(const nn_mul32_head *head, const nn_mul32_channel *channel,
                               const int32_t *sums, const int32_t *inputs, int8_t *out,
                               int32_t step, int32_t pixels) {
    for (int32_t p = 0; p < pixels; p++, out += step) {
        *out =
            nn_conv_output(nn_wrapping_add(sums[CHANNELS * p], inputs[p]), channel, &head->common);
    }
}

/* Calls by name, not by address: the stack that they take can be told from the code. */
static inline __attribute__((always_inline)) void
put_any(const nn_mul32_head *head, const nn_mul32_channel *channel, const int32_t *sums,
        const int32_t *inputs, int8_t *out, int32_t step, int32_t pixels) {
    const int32_t mode = head->mode;
    if (mode == NN_MUL32_GENERAL) {
        put_general(head, channel, sums, inputs, out, step, pixels);
    } else if (mode == NN_MUL32_PLAIN) {
        if (head->wide) {
            put_plain_wide(head, channel, sums, inputs, out, step, pixels);
        } else {
            put_plain(head, channel, sums, inputs, out, step, pixels);
        }
    } else if (head->wide) {
        put_odd_wide(head, channel, sums, inputs, out, step, pixels);
    } else {
        put_odd(head, channel, sums, inputs, out, step, pixels);
    }
}

/* ---- tiles --------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void tile(const void *constants, const nn_runs *runs,
                                                       int8_t *out, int32_t channels,
                                                       const int32_t pixels) {
    const job *j = (const job *)constants;
    const nn_mul32_head *head = j->head;
    const nn_mul32_channel *channel = nn_mul32_channels(head);
    const uint32_t *weights = nn_mul32_weights(head, (channels + 1) & ~1);
    const int32_t words = (runs->count * runs->bytes + 3) >> 2, step = runs->out_step;
    const uint8_t *first = (const uint8_t *)j->quads, *end = first + 4 * PIXELS * words;
    int32_t inputs[PIXELS], sums[PIXELS * CHANNELS];
    take_tile(runs, j->quads, inputs, pixels);
    for (int32_t c = 0; c < channels; c += CHANNELS, weights += 2 * words) {
        if (pixels == 1) {
            sum1(sums, first, weights, end);
        } else if (pixels == 2) {
            sum2(sums, first, weights, end);
        } else {
            nn_mul32_sum4(sums, first, weights, end);
        }
        put_any(head, channel++, sums, inputs, out + c, step, pixels);
        if (c + 1 < channels) {
            put_any(head, channel++, sums + 1, inputs, out + c + 1, step, pixels);
        }
    }
}

#define TILE(name, pixels)                                                                         \
    static void name(const void *constants, const nn_runs *runs, int8_t *out, int32_t channels) {  \
        tile(constants, runs, out, channels, pixels);                                              \
    }
TILE(tile1, 1)
TILE(tile2, 2)
TILE(tile3, 3)
TILE(tile4, 4)

/* Bytes of a tile's quads. */
static int32_t quads_bytes(const nn_conv_geometry *g, const nn_view *in) {
    return PIXELS * ((g->kernel_h * g->kernel_w * in->channels + 3) & ~3);
}

void nn_conv2d_s8_mul32(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch) {
    static nn_tile *const tiles[PIXELS] = {tile1, tile2, tile3, tile4};
    const nn_mul32_head *head = (const nn_mul32_head *)constants;
    const job j = {head->common, head, (uint32_t *)scratch};
    /* A run is a whole number of words, or the taps are collected. */
    const int32_t shortest = (geometry->kernel_w * in->channels & 3) != 0 ? NEVER : SHORTEST_RUN;
    nn_patch_walk(geometry, &j, in, out, window, (int8_t *)scratch + quads_bytes(geometry, in),
                  tiles, PIXELS, shortest);
}

int32_t nn_conv2d_s8_mul32_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                         const nn_view *out) {
    return quads_bytes(geometry, in) + nn_patch_bytes(geometry, in, out, PIXELS);
}
