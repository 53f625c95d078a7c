/* FULLY_CONNECTED on int16: two or four outputs at a time, from weights as nn_dsp_wide.h has them.
 */
#include "nn_dsp_wide.h"

/* Four rows of weights times the inputs, `quads` of them and one at least, and `count` outputs, one
 * at least, up to the first that takes longer arithmetic; returns how many are left, that one with
 * them. No sum can leave an int32. An output is nn_wide_dense_output, not clamped. */
#if NN_DSP

/* Products:
 *
 *   r0, r1, r2   weights of the first pair, of the second, inputs; read forward
 *   r3           quads left; r4 to r7: sums; lr: channels
 *   r8, r9       a quad's inputs
 *   r10, r11     its weights of a pair, as packed and then the later half; r12: the earlier half
 *
 * With an odd number of quads the first round is entered in its middle. Outputs:
 *
 *   r0 to r3     sums, channels, outputs left, out
 *   r4, r5       the sum with its bias, then its size; its sign, 0 or -1: its upper word as well
 *   r6, r7       the product with the upper 32 bits of the factor; r12: the most it may be, upper
 *                word
 *   r8           places to shift right, but one */
#define ROW(sum, w)                                                                                \
    "sxtb16 r12, " w "\n"                                                                          \
    "sxtb16 " w ", " w ", ror #8\n"                                                                \
    "smlad " sum ", r12, r8, " sum "\n"                                                            \
    "smlad " sum ", " w ", r9, " sum "\n"
#define QUAD_OF_FOUR                                                                               \
    "ldrd r8, r9, [r2], #8\n"                                                                      \
    "ldrd r10, r11, [r0], #8\n" ROW("r4", "r10")                                                   \
        ROW("r5", "r11") "ldrd r10, r11, [r1], #8\n" ROW("r6", "r10") ROW("r7", "r11")

__attribute__((naked, noinline)) static int32_t
compute_four(__attribute__((unused)) const uint32_t *w, __attribute__((unused)) const int16_t *x,
             __attribute__((unused)) int32_t quads,
             __attribute__((unused)) const nn_wide_dense_channel *c,
             __attribute__((unused)) int16_t *out, __attribute__((unused)) int32_t count,
             __attribute__((unused)) int32_t sums[4]) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
                   "mov lr, r3\n"
                   "mov r3, r2\n"
                   "mov r2, r1\n"
                   "add r1, r0, r3, lsl #3\n"
                   "mov r4, #0\n"
                   "mov r5, #0\n"
                   "mov r6, #0\n"
                   "mov r7, #0\n"
                   "lsls r12, r3, #31\n"
                   "bne 2f\n"
                   "1:\n" QUAD_OF_FOUR "sub r3, r3, #1\n"
                   "2:\n" QUAD_OF_FOUR "subs r3, r3, #1\n"
                   "bne.w 1b\n"
                   "ldr r0, [sp, #44]\n"
                   "mov r1, lr\n"
                   "ldrd r3, r2, [sp, #36]\n"
                   "stmia.w r0, {r4, r5, r6, r7}\n"
                   "3: ldr lr, [r0], #4\n"
                   "ldmia.w r1!, {r4, r5, r6, r7, r8, r12}\n"
                   "adds r4, r4, lr\n"
                   "adc r5, r5, lr, asr #31\n"
                   "sub r8, r8, #54\n"
                   "cmp r5, r4, asr #31\n"
                   "bne 4f\n"
                   "cmp r8, #30\n"
                   "bhi 4f\n"
                   "eor r4, r4, r5\n"
                   "lsr r6, r6, #21\n"
                   "orr r6, r6, r7, lsl #11\n"
                   "sub r4, r4, r5\n"
                   "umull r6, r7, r4, r6\n"
                   "add r4, r4, #1024\n"
                   "adds r6, r6, r4\n"
                   "adc r12, r7, #0\n"
                   "lsr r7, r7, r8\n"
                   "lsr r12, r12, r8\n"
                   "add r7, r7, #1\n"
                   "add r12, r12, #1\n"
                   "lsr r7, r7, #1\n"
                   "cmp r7, r12, lsr #1\n"
                   "bne 4f\n"
                   "eor r7, r7, r5\n"
                   "sub r7, r7, r5\n"
                   "ssat r7, #16, r7\n"
                   "strh r7, [r3], #2\n"
                   "subs r2, r2, #1\n"
                   "bne 3b\n"
                   "4: mov r0, r2\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}

#else

/* The same arithmetic, step by step. */
static int32_t compute_four(const uint32_t *w, const int16_t *x, int32_t quads,
                            const nn_wide_dense_channel *c, int16_t *out, int32_t count,
                            int32_t sums[4]) {
    for (int32_t i = 0; i < 4; i++) {
        const uint32_t *row = w + i / 2 * 2 * quads + i % 2;
        sums[i] = 0;
        for (int32_t k = 0; k < quads; k++, row += 2) {
            sums[i] = nn_smlad(nn_sxtb16(*row), nn_dsp_wide_load(x + 4 * k), sums[i]);
            sums[i] = nn_smlad(nn_sxtb16_ror8(*row), nn_dsp_wide_load(x + 4 * k + 2), sums[i]);
        }
    }
    for (; count > 0; count--, c++) {
        const int64_t total = *sums++ + nn_wide_bias(c->bias_low, c->bias_high);
        const int32_t sign = (int32_t)total >> 31;
        const uint32_t size = ((uint32_t)total ^ (uint32_t)sign) - (uint32_t)sign;
        const uint32_t m0 = (uint32_t)c->factor_low, m1 = (uint32_t)c->factor_high;
        const uint64_t low = (uint64_t)size * ((m1 << 11) | (m0 >> 21));
        const uint64_t high = low + (size + 1024U);
        const uint32_t down = (uint32_t)c->right_shift - 54;
        const uint32_t least = ((uint32_t)(low >> 32) >> (down & 31)) + 1;
        const uint32_t most = ((uint32_t)(high >> 32) >> (down & 31)) + 1;
        if ((int32_t)(total >> 32) != sign || down > 30 || least >> 1 != most >> 1) {
            break;
        }
        *out++ = (int16_t)nn_clamp((int32_t)((least >> 1) ^ (uint32_t)sign) - sign, NN_WIDE_MIN,
                                   NN_WIDE_MAX);
    }
    return count;
}

#endif

/* All outputs, two at a time, in longer arithmetic. */
NN_OUTLINE void put_pairs(const nn_wide_block *block, const int16_t *values, int16_t *out,
                          int32_t outputs, int32_t quads) {
    const nn_wide_dense_channel *channels = (const nn_wide_dense_channel *)block->channels;
    const uint32_t *w = (const uint32_t *)(const void *)block->weights;
    const int32_t sum_bits = block->common.sum_bits;
    for (int32_t c = 0; c < outputs;) {
        int64_t sums[4];
        w = nn_dsp_wide_pair(sums, sum_bits, w, values, NULL, quads);
        for (int32_t i = 0; i < 2 && c < outputs; i++, c++) {
            out[c] = nn_wide_dense_output(sums[i], channels + c, &block->common);
        }
    }
}

/* The outputs, four at a time, where no sum can leave an int32; there are three at least. The last
 * four may begin among those before them. */
NN_OUTLINE void put_fours(const nn_wide_block *block, const int16_t *values, int16_t *out,
                          int32_t outputs, int32_t quads) {
    const nn_wide_dense_channel *channels = (const nn_wide_dense_channel *)block->channels;
    const uint32_t *w = (const uint32_t *)(const void *)block->weights;
    const int32_t last = (outputs + 1) / 2 * 2 - 4;
    for (int32_t at = 0; at < outputs; at += 4) {
        const int32_t first = nn_min(at, last), end = nn_min(first + 4, outputs);
        int32_t sums[4];
        int32_t left = compute_four(w + first * quads, values, quads, channels + first, out + first,
                                    end - first, sums);
        for (; left > 0; left--) {
            const int32_t c = end - left;
            out[c] = nn_wide_dense_output(sums[c - first], channels + c, &block->common);
        }
    }
}

/* The inputs with zeros behind them, whole quads. A call would take longer than few of them. */
static inline const int16_t *fill(int16_t *to, const int16_t *from, int32_t inputs, int32_t quads) {
    const int32_t pairs = inputs / 2;
    for (int32_t i = 0; i < pairs; i++) {
        nn_store4(to + 2 * i, nn_load4(from + 2 * i));
        NN_BARRIER();
    }
    to[inputs - 1] = from[inputs - 1];
    for (int32_t i = inputs; i < 4 * quads; i++) {
        to[i] = 0;
        NN_BARRIER();
    }
    return to;
}

void nn_fully_connected_s16_dsp(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels, quads = (inputs + 3) / 4;
    const nn_wide_block block = nn_wide_open(constants, outputs, sizeof(nn_wide_dense_channel));
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *values = nn_wide_in(in, y, x);
            int16_t *result = nn_wide_out(out, y, x);
            if (scratch != NULL) { /* the inputs are no whole quads */
                values = fill((int16_t *)scratch, values, inputs, quads);
            }
            if (block.common.sum_bits == 32 && outputs > 2) {
                put_fours(&block, values, result, outputs, quads);
            } else {
                put_pairs(&block, values, result, outputs, quads);
            }
            nn_dsp_clamp_wide(result, outputs, block.common.clamp_min, block.common.clamp_max);
        }
    }
}
