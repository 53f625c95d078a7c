/* Sums of products of int16 activations and int8 weights, two products an instruction.
 *
 * Weights lie in pairs of output channels: for every four inputs ("quad") a word of the first
 * channel, then one of the second (zeros where there is none), with bytes 0, 2, 1, 3 of the quad,
 * so that sign extension gives (w0, w1) and (w2, w3) as halves. The last quad is filled up with
 * zeros. Inputs lie one after the other, whole quads of them.
 */
#ifndef NN_DSP_WIDE_H
#define NN_DSP_WIDE_H

#include "nn_dsp.h"
#include "nn_wide.h"

#if NN_DSP

/* sum + a.lo * b.lo + a.hi * b.hi */
static inline int64_t nn_smlald(uint32_t a, uint32_t b, int64_t sum) {
    __asm("smlald %Q0, %R0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

#else

static inline int64_t nn_smlald(uint32_t a, uint32_t b, int64_t sum) {
    return sum + nn_lo(a) * nn_lo(b) + nn_hi(a) * nn_hi(b);
}

#endif

static inline uint32_t nn_dsp_wide_load(const int16_t *from) {
    uint32_t word;
    __builtin_memcpy(&word, from, 4);
    return word;
}

/* Two channels of two pixels, where no sum can leave an int32; `quads`: one at least. Returns where
 * the weights end.
 *
 *   r0           quads left
 *   r1 to r3     weights, inputs of the first pixel, of the second; read forward
 *   r4 to r7     sums, those of the first pixel first
 *   r8, r9       a quad's weights, as packed and then the later halves; r12, lr: the earlier halves
 *   r10, r11     a pixel's inputs
 *
 * With an odd number of quads the first round is entered in its middle. */
#if NN_DSP

#define NN_DSP_WIDE_22                                                                             \
    "ldrd r8, r9, [r1], #8\n"                                                                      \
    "ldrd r10, r11, [r2], #8\n"                                                                    \
    "sxtb16 r12, r8\n"                                                                             \
    "sxtb16 lr, r9\n"                                                                              \
    "smlad r4, r12, r10, r4\n"                                                                     \
    "sxtb16 r8, r8, ror #8\n"                                                                      \
    "smlad r5, lr, r10, r5\n"                                                                      \
    "sxtb16 r9, r9, ror #8\n"                                                                      \
    "smlad r4, r8, r11, r4\n"                                                                      \
    "smlad r5, r9, r11, r5\n"                                                                      \
    "ldrd r10, r11, [r3], #8\n"                                                                    \
    "smlad r6, r12, r10, r6\n"                                                                     \
    "smlad r7, lr, r10, r7\n"                                                                      \
    "smlad r6, r8, r11, r6\n"                                                                      \
    "smlad r7, r9, r11, r7\n"

__attribute__((naked, noinline, unused)) static const uint32_t *nn_dsp_wide_narrow22(
    __attribute__((unused)) int64_t sums[4], __attribute__((unused)) const uint32_t *w,
    __attribute__((unused)) const int16_t *x0, __attribute__((unused)) const int16_t *x1,
    __attribute__((unused)) int32_t quads) {
    __asm volatile("push {r0, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
                   "ldr r0, [sp, #40]\n"
                   "mov r4, #0\n"
                   "mov r5, #0\n"
                   "mov r6, #0\n"
                   "mov r7, #0\n"
                   "lsls r12, r0, #31\n"
                   "bne 2f\n"
                   "1:\n" NN_DSP_WIDE_22 "sub r0, r0, #1\n"
                   "2:\n" NN_DSP_WIDE_22 "subs r0, r0, #1\n"
                   "bne.w 1b\n"
                   "pop {r3}\n"
                   "asr r8, r4, #31\n"
                   "asr r9, r5, #31\n"
                   "asr r10, r6, #31\n"
                   "asr r11, r7, #31\n"
                   "strd r4, r8, [r3]\n"
                   "strd r5, r9, [r3, #8]\n"
                   "strd r6, r10, [r3, #16]\n"
                   "strd r7, r11, [r3, #24]\n"
                   "mov r0, r1\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}

#else

static inline const uint32_t *nn_dsp_wide_narrow22(int64_t sums[4], const uint32_t *w,
                                                   const int16_t *x0, const int16_t *x1,
                                                   int32_t quads) {
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (; quads > 0; quads--, w += 2, x0 += 4, x1 += 4) {
        const uint32_t a = w[0], b = w[1];
        const uint32_t low0 = nn_dsp_wide_load(x0), low1 = nn_dsp_wide_load(x1);
        const uint32_t high0 = nn_dsp_wide_load(x0 + 2), high1 = nn_dsp_wide_load(x1 + 2);
        const uint32_t a_low = nn_sxtb16(a), a_high = nn_sxtb16_ror8(a);
        const uint32_t b_low = nn_sxtb16(b), b_high = nn_sxtb16_ror8(b);
        s00 = nn_smlad(a_high, high0, nn_smlad(a_low, low0, s00));
        s01 = nn_smlad(b_high, high0, nn_smlad(b_low, low0, s01));
        s10 = nn_smlad(a_high, high1, nn_smlad(a_low, low1, s10));
        s11 = nn_smlad(b_high, high1, nn_smlad(b_low, low1, s11));
    }
    sums[0] = s00;
    sums[1] = s01;
    sums[2] = s10;
    sums[3] = s11;
    return w;
}

#endif

/* Two channels of one pixel, likewise. */
NN_OUTLINE const uint32_t *nn_dsp_wide_narrow21(int64_t sums[2], const uint32_t *w,
                                                const int16_t *x, int32_t quads) {
    int32_t s0 = 0, s1 = 0;
    for (; quads > 0; quads--, w += 2, x += 4) {
        const uint32_t a = w[0], b = w[1];
        const uint32_t low = nn_dsp_wide_load(x), high = nn_dsp_wide_load(x + 2);
        s0 = nn_smlad(nn_sxtb16_ror8(a), high, nn_smlad(nn_sxtb16(a), low, s0));
        s1 = nn_smlad(nn_sxtb16_ror8(b), high, nn_smlad(nn_sxtb16(b), low, s1));
    }
    sums[0] = s0;
    sums[1] = s1;
    return w;
}

/* Two channels of one pixel, summed in 64 bits. */
NN_OUTLINE const uint32_t *nn_dsp_wide_long21(int64_t sums[2], const uint32_t *w, const int16_t *x,
                                              int32_t quads) {
    int64_t s0 = 0, s1 = 0;
    for (; quads > 0; quads--, w += 2, x += 4) {
        const uint32_t a = w[0], b = w[1];
        const uint32_t low = nn_dsp_wide_load(x), high = nn_dsp_wide_load(x + 2);
        s0 = nn_smlald(nn_sxtb16_ror8(a), high, nn_smlald(nn_sxtb16(a), low, s0));
        s1 = nn_smlald(nn_sxtb16_ror8(b), high, nn_smlald(nn_sxtb16(b), low, s1));
    }
    sums[0] = s0;
    sums[1] = s1;
    return w;
}

/* A pair's sums of one or two pixels (x1 NULL: of one): those of x0 first. */
static inline const uint32_t *nn_dsp_wide_pair(int64_t sums[4], int32_t sum_bits, const uint32_t *w,
                                               const int16_t *x0, const int16_t *x1,
                                               int32_t quads) {
    if (sum_bits > 32) {
        if (x1 != NULL) {
            (void)nn_dsp_wide_long21(sums + 2, w, x1, quads);
        }
        return nn_dsp_wide_long21(sums, w, x0, quads);
    }
    return x1 != NULL ? nn_dsp_wide_narrow22(sums, w, x0, x1, quads)
                      : nn_dsp_wide_narrow21(sums, w, x0, quads);
}

#endif
