/* FULLY_CONNECTED, Helium: dot products of 16 bytes, six outputs at a time.
 *
 * constants: nn_mve_head; for each four outputs their multipliers, their shifts and their lows (as
 * in nn_dense_channel; int32[12]); then, with n = ceil(inputs / 16) and weights padded to 16 n
 * bytes an output, tiles of six outputs: int32[6], their biases, then n times 16 weights of each;
 *   the outputs left: int32, the bias, then 16 n weights.
 * Modes: NN_MVE_ODD if every shift is -2 or less: the half that rounds is then at least 2^32, and
 * the lower half of the 64-bit product only has a say by its carry; NN_MVE_PLAIN if all lows are 0
 * as well, and there is none; else NN_MVE_GENERAL.
 */
#include "nn_conv.h"
#include "nn_mve.h"

#define BLOCK 48 /* outputs; a multiple of 6 and of 8 */

/* What dot_tiles reads: its assembly knows the order. */
typedef struct {
    const int8_t *x, *weights;
    int32_t padded; /* 16 n */
    int32_t *sums;
    int32_t inputs;
    int32_t tiles, rest; /* tiles of six outputs, then single outputs */
} dot_arguments;

/* Sixteen inputs of six outputs, and of one; the weights come from q1 and q2 in turns. */
#define SIX_DOTS                                                                                   \
    "vldrb.u8 q0, [r1], #16\n"                                                                     \
    "vldrb.u8 q1, [r3], #16\n"                                                                     \
    "vmladava.s8 r0, q0, q1\n"                                                                     \
    "vldrb.u8 q2, [r3], #16\n"                                                                     \
    "vmladava.s8 r2, q0, q2\n"                                                                     \
    "vldrb.u8 q1, [r3], #16\n"                                                                     \
    "vmladava.s8 r4, q0, q1\n"                                                                     \
    "vldrb.u8 q2, [r3], #16\n"                                                                     \
    "vmladava.s8 r6, q0, q2\n"                                                                     \
    "vldrb.u8 q1, [r3], #16\n"                                                                     \
    "vmladava.s8 r8, q0, q1\n"                                                                     \
    "vldrb.u8 q2, [r3], #16\n"                                                                     \
    "vmladava.s8 r10, q0, q2\n"
#define ONE_DOT                                                                                    \
    "vldrb.u8 q0, [r1], #16\n"                                                                     \
    "vldrb.u8 q1, [r3], #16\n"                                                                     \
    "vmladava.s8 r0, q0, q1\n"

/* Computes sums; returns the weights behind those it used. By hand, as in nn_conv2d_s8_mve: 64
 * inputs a turn, then what is left by sixteens.
 *   r0, r2, r4, r6, r8, r10   the sums of a tile; r0 of a single output
 *   r1, r3, r7                inputs, weights, where sums go
 *   r5                        what r1 moves on by in a tile
 *   r9, r11                   inputs left behind the turns of 64, and these
 *   r12, lr                   tiles or outputs to do, the innermost loop
 */
static NN_MVE_NAKED const int8_t *dot_tiles(NN_MVE_IN_ASM const dot_arguments *arguments) {
    __asm volatile("push {r4-r11, lr}\n"
                   "ldm r0, {r1, r3, r5, r7, r9, r11}\n"
                   "ldr r12, [r0, #24]\n"
                   "push {r12}\n"
                   "mov r12, r11\n"
                   "lsr r11, r9, #6\n"
                   "and r9, r9, #63\n"
                   "cmp r12, #0\n"
                   "beq 3f\n"
                   "0:\n"
                   "ldm r3!, {r0, r2, r4, r6, r8, r10}\n"
                   "wls lr, r11, 2f\n"
                   "1:\n" SIX_DOTS SIX_DOTS SIX_DOTS SIX_DOTS "le lr, 1b\n"
                   "2:\n"
                   "wlstp.8 lr, r9, 2f\n"
                   "1:\n" SIX_DOTS "letp lr, 1b\n"
                   "2:\n"
                   "sub r1, r1, r5\n"
                   "stm r7!, {r0, r2, r4, r6, r8, r10}\n"
                   "subs r12, r12, #1\n"
                   "bne 0b\n"
                   "3:\n"
                   "pop {r12}\n"
                   "cmp r12, #0\n"
                   "beq 5f\n"
                   "4:\n"
                   "ldr r0, [r3], #4\n"
                   "wls lr, r11, 2f\n"
                   "1:\n" ONE_DOT ONE_DOT ONE_DOT ONE_DOT "le lr, 1b\n"
                   "2:\n"
                   "wlstp.8 lr, r9, 2f\n"
                   "1:\n" ONE_DOT "letp lr, 1b\n"
                   "2:\n"
                   "sub r1, r1, r5\n"
                   "str r0, [r7], #4\n"
                   "subs r12, r12, #1\n"
                   "bne 4b\n"
                   "5:\n"
                   "mov r0, r3\n"
                   "pop {r4-r11, pc}\n");
}

/* round(sum * (multiplier + low * 2^-16) * 2^(shift - 31)), halves away from zero, of four sums. */
static inline int32x4_t requantise(int32x4_t sums, const int32_t *factors, int mode) {
    const uint32x4_t size = vreinterpretq_u32_s32(vabsq_s32(sums)); /* 2^31 too */
    const uint32x4_t multiplier = vreinterpretq_u32_s32(vldrwq_s32(factors));
    const int32x4_t shift = vaddq_n_s32(vldrwq_s32(factors + 4), 1);
    uint32x4_t high = vmulhq_u32(size, multiplier);
    if (mode == NN_MVE_ODD) {
        const uint32x4_t more = vmulhq_u32(size, vreinterpretq_u32_s32(vldrwq_s32(factors + 8)));
        const uint32x4_t low = vaddq_u32(vmulq_u32(size, multiplier), more);
        high = vaddq_m_n_u32(high, high, 1, vcmphiq_u32(more, low));
    }
    const int32x4_t scaled = vreinterpretq_s32_u32(vrshlq_u32(high, shift));
    return vnegq_m_s32(scaled, scaled, vcmpltq_n_s32(sums, 0));
}

/* Puts out `count` sums, which include the biases. */
static inline void finish(const nn_conv_constants *common, const int32_t *factors,
                          const int32_t *sums, int8_t *out, int32_t count, int mode) {
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int16x8_t low = vdupq_n_s16((int16_t)common->clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)common->clamp_max);
    const uint16x8_t offsets = vldrhq_u16(order);
    const int32_t zero_point = common->output_zero_point;
    for (; count > 0; count -= 8, out += 8, sums += 8, factors += 24) {
        const int32x4_t first = requantise(vldrwq_s32(sums), factors, mode);
        const int32x4_t second = requantise(vldrwq_s32(sums + 4), factors + 12, mode);
        const int16x8_t result = nn_mve_narrow(first, second, zero_point, low, high);
        const int16_t left = (int16_t)count;
        vstrbq_scatter_offset_p_s16(out, offsets, result,
                                    vcmpltq_n_s16(vreinterpretq_s16_u16(offsets), left));
    }
}

/* As finish, for any multiplier and shift. */
static NN_NOINLINE void finish_any(const nn_conv_constants *common, const int32_t *factors,
                                   const int32_t *sums, int8_t *out, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t *four = factors + i / 4 * 12 + i % 4;
        const nn_dense_channel channel = {0, four[0], four[4], (int32_t)((uint32_t)four[8] >> 16)};
        out[i] = nn_dense_output(sums[i], &channel, common);
    }
}

void nn_fully_connected_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    const nn_mve_head *head = (const nn_mve_head *)constants;
    const int32_t inputs = in->channels, outputs = out->channels;
    const int32_t *const factors = (const int32_t *)(const void *)(head + 1);
    const int8_t *const weights = (const int8_t *)(factors + ((outputs + 3) & ~3) * 3);
    int32_t sums[BLOCK];
    dot_arguments dots = {NULL, NULL, (inputs + 15) & ~15, sums, inputs, 0, 0};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *result = nn_out_pixel(out, y, x);
            dots.x = nn_pixel(in, y, x);
            dots.weights = weights;
            for (int32_t c = 0; c < outputs; c += BLOCK) {
                const int32_t count = nn_min(BLOCK, outputs - c);
                dots.tiles = count / 6;
                dots.rest = count - 6 * dots.tiles;
                dots.weights = dot_tiles(&dots);
                if (head->mode == NN_MVE_PLAIN) {
                    finish(&head->common, factors + 3 * c, sums, result + c, count, NN_MVE_PLAIN);
                } else if (head->mode == NN_MVE_ODD) {
                    finish(&head->common, factors + 3 * c, sums, result + c, count, NN_MVE_ODD);
                } else {
                    finish_any(&head->common, factors + 3 * c, sums, result + c, count);
                }
            }
        }
    }
}
