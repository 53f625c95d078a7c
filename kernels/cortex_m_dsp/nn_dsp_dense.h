/* Up to six rows of weights times one vector of int8: the heart of the dense layers.
 *
 * Rows are packed in pairs: each half of a word is 256 * (weight of the odd row) + (weight of the
 * even row) + 128, and so its upper byte is the odd row's weight, its lower byte 0 to 255. Three
 * pairs stand side by side ("group"); what is left over, one or two pairs, is a group of its own.
 * For every four inputs k0 to k3 ("quad") a group has the words (k0, k2) of its pairs, then the
 * words (k1, k3). The inputs are a whole number of octets, two quads each; zeros fill up the last.
 *
 * A dual multiply-accumulate of a word gives 256 * odd + even + 128 * inputs, of the upper bytes
 * alone the odd row's products; the difference is the even row's, modulo 2^32, once the inputs'
 * own sum is known. Nothing can overflow that does not in the plain kernel.
 *
 * The inputs are read where they lie, at any address, and widened in registers. That takes two
 * instructions a quad and group more than reading inputs that were widened once, and no scratch.
 */
#ifndef NN_DSP_DENSE_H
#define NN_DSP_DENSE_H

#include "nn_dsp.h"

#define NN_DSP_GROUP_ROWS 6
#define NN_DSP_OCTET 8 /* inputs */

/* Adds the products of `octets` octets of inputs, one at least; `sums`: of each pair that of its
 * words, then the odd row's. */
typedef void nn_dsp_add_group(const int8_t *x, const uint32_t *w, int32_t octets, int32_t *sums);

#if NN_DSP

/* The three functions that follow differ in the number of pairs. Registers:
 *
 *   r0, r1    inputs, weights; read forward
 *   r2, r3    a quad as it lies in memory; its (k0, k2) and its (k1, k3)
 *   r4 to r9  sums: a pair's words, the odd row, the next pair's words, ...
 *   others    weights: as packed, then the odd row's, in place
 *   stack     the inputs' end; where the sums are
 *
 * Schedule: a word of weights is multiplied as packed, its upper bytes are extended in place and
 * multiplied again. A Cortex-M7 issues one multiplication a cycle and, together with it, one
 * extension or load of a single word, not of a register that it reads; loads of several words go
 * alone. So each extension stands between multiplications of other words, two cycles before its
 * own, and the second quad is loaded while the first is multiplied. A Cortex-M4 takes an
 * instruction a cycle in any order, as long as nothing waits for a load just before it.
 *
 * Two octets are unrolled: with four, the code of a group and of its outputs is larger than the
 * kilobyte for code of STM32's flash, and is read from flash each time (autoencoder on a
 * Nucleo-L4R5ZI: a fifth of all cycles). ENTER jumps into the first round so that the last one is
 * whole; `bytes`: of an octet's instructions. */
#define NN_DSP_ADD_ENTER(bytes, own)                                                               \
    "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                            \
    "add r12, r0, r2, lsl #3\n"                                                                    \
    "push {r12}\n"                                                                                 \
    "rsb r2, r2, #0\n"                                                                             \
    "and r2, r2, #1\n"                                                                             \
    "mov r12, #" bytes "\n"                                                                        \
    "adr.w r10, 1f\n"                                                                              \
    "mla r10, r2, r12, r10\n"                                                                      \
    "orr r10, r10, #1\n"                                                                           \
    "ldmia.w r3, {" own "}\n"                                                                      \
    "bx r10\n"                                                                                     \
    ".p2align 2\n"                                                                                 \
    "1: .rept 2\n"
#define NN_DSP_ADD_LEAVE(own)                                                                      \
    ".endr\n"                                                                                      \
    "ldr r2, [sp]\n"                                                                               \
    "cmp r0, r2\n"                                                                                 \
    "bne.w 1b\n"                                                                                   \
    "pop {r2, r3}\n"                                                                               \
    "stmia.w r3, {" own "}\n"                                                                      \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

#define NN_DSP_ADD_ARGUMENTS                                                                       \
    __attribute__((unused)) const int8_t *x, __attribute__((unused)) const uint32_t *w,            \
        __attribute__((unused)) int32_t octets, __attribute__((unused)) int32_t *sums

/* Weights in r10 to r12 and lr, four words at a time of the twelve: 45 instructions. */
__attribute__((naked, noinline)) static void nn_dsp_add_three(NN_DSP_ADD_ARGUMENTS) {
    __asm volatile(NN_DSP_ADD_ENTER("180", "r4, r5, r6, r7, r8, r9") /* */
                   "ldr r2, [r0], #4\n"
                   "ldmia.w r1!, {r10, r11, r12, lr}\n"
                   "sxtb16 r3, r2\n"
                   "sxtb16 r2, r2, ror #8\n"
                   "smlad r6, r11, r3, r6\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r4, r10, r3, r4\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r8, r12, r3, r8\n"
                   "sxtb16 r12, r12, ror #8\n"
                   "smlad r4, lr, r2, r4\n"
                   "sxtb16 lr, lr, ror #8\n"
                   "smlad r5, r10, r3, r5\n"
                   "smlad r5, lr, r2, r5\n"
                   "smlad r7, r11, r3, r7\n"
                   "smlad r9, r12, r3, r9\n"
                   "ldmia.w r1!, {r10, r11, r12, lr}\n"
                   "ldr r3, [r0], #4\n"
                   "smlad r6, r10, r2, r6\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r8, r11, r2, r8\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r7, r10, r2, r7\n"
                   "smlad r9, r11, r2, r9\n"
                   "sxtb16 r2, r3\n"
                   "sxtb16 r3, r3, ror #8\n"
                   "smlad r4, r12, r2, r4\n"
                   "sxtb16 r12, r12, ror #8\n"
                   "smlad r6, lr, r2, r6\n"
                   "sxtb16 lr, lr, ror #8\n"
                   "smlad r5, r12, r2, r5\n"
                   "smlad r7, lr, r2, r7\n"
                   "ldmia.w r1!, {r10, r11, r12, lr}\n"
                   "smlad r8, r10, r2, r8\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r4, r11, r3, r4\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r6, r12, r3, r6\n"
                   "smlad r5, r11, r3, r5\n"
                   "sxtb16 r12, r12, ror #8\n"
                   "smlad r8, lr, r3, r8\n"
                   "sxtb16 lr, lr, ror #8\n"
                   "smlad r7, r12, r3, r7\n"
                   "smlad r9, r10, r2, r9\n"
                   "smlad r9, lr, r3, r9\n" NN_DSP_ADD_LEAVE("r4, r5, r6, r7, r8, r9"));
}

/* Weights in r8 to r11, a quad's: 32 instructions. */
__attribute__((naked, noinline)) static void nn_dsp_add_two(NN_DSP_ADD_ARGUMENTS) {
    __asm volatile(NN_DSP_ADD_ENTER("128", "r4, r5, r6, r7") /* */
                   "ldr r2,[r0],#4\n"
                   "ldmia.w r1!,{r8,r9,r10,r11}\n"
                   "sxtb16 r3, r2\n"
                   "sxtb16 r2, r2, ror #8\n"
                   "smlad r4, r8, r3, r4\n"
                   "sxtb16 r8, r8, ror #8\n"
                   "smlad r6, r9, r3, r6\n"
                   "sxtb16 r9, r9, ror #8\n"
                   "smlad r5, r8, r3, r5\n"
                   "smlad r7, r9, r3, r7\n"
                   "smlad r4, r10, r2, r4\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r6, r11, r2, r6\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r5, r10, r2, r5\n"
                   "smlad r7, r11, r2, r7\n"
                   "ldr r2,[r0],#4\n"
                   "ldmia.w r1!,{r8,r9,r10,r11}\n"
                   "sxtb16 r3, r2\n"
                   "sxtb16 r2, r2, ror #8\n"
                   "smlad r4, r8, r3, r4\n"
                   "sxtb16 r8, r8, ror #8\n"
                   "smlad r6, r9, r3, r6\n"
                   "sxtb16 r9, r9, ror #8\n"
                   "smlad r5, r8, r3, r5\n"
                   "smlad r7, r9, r3, r7\n"
                   "smlad r4, r10, r2, r4\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r6, r11, r2, r6\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r5, r10, r2, r5\n"
                   "smlad r7, r11, r2, r7\n" NN_DSP_ADD_LEAVE("r4, r5, r6, r7"));
}

/* Weights in r8 to r11, an octet's; r6: (k0, k2) of either quad: 19 instructions. */
__attribute__((naked, noinline)) static void nn_dsp_add_one(NN_DSP_ADD_ARGUMENTS) {
    __asm volatile(NN_DSP_ADD_ENTER("76", "r4, r5") /* */
                   "ldr r2, [r0], #4\n"
                   "sxtb16 r6, r2\n"
                   "ldr r3, [r0], #4\n"
                   "ldmia.w r1!, {r8, r9, r10, r11}\n"
                   "sxtb16 r2, r2, ror #8\n"
                   "smlad r4, r8, r6, r4\n"
                   "sxtb16 r8, r8, ror #8\n"
                   "smlad r4, r9, r2, r4\n"
                   "sxtb16 r9, r9, ror #8\n"
                   "smlad r5, r8, r6, r5\n"
                   "sxtb16 r6, r3\n"
                   "smlad r5, r9, r2, r5\n"
                   "sxtb16 r3, r3, ror #8\n"
                   "smlad r4, r10, r6, r4\n"
                   "sxtb16 r10, r10, ror #8\n"
                   "smlad r4, r11, r3, r4\n"
                   "sxtb16 r11, r11, ror #8\n"
                   "smlad r5, r10, r6, r5\n"
                   "smlad r5, r11, r3, r5\n" NN_DSP_ADD_LEAVE("r4, r5"));
}

#else

/* The same arithmetic, step by step. */
static inline void nn_dsp_add_pairs(const int8_t *x, const uint32_t *w, int32_t quads,
                                    int32_t *sums, int32_t pairs) {
    for (; quads > 0; quads--, x += 4) {
        const uint32_t word = nn_load4(x);
        for (int32_t half = 0; half < 2; half++) {
            const uint32_t inputs = half == 0 ? nn_sxtb16(word) : nn_sxtb16_ror8(word);
            for (int32_t p = 0; p < pairs; p++, w++) {
                sums[2 * p] = nn_smlad(*w, inputs, sums[2 * p]);
                sums[2 * p + 1] = nn_smlad(nn_sxtb16_ror8(*w), inputs, sums[2 * p + 1]);
            }
        }
    }
}

static void nn_dsp_add_three(const int8_t *x, const uint32_t *w, int32_t octets, int32_t *sums) {
    nn_dsp_add_pairs(x, w, 2 * octets, sums, 3);
}

static void nn_dsp_add_two(const int8_t *x, const uint32_t *w, int32_t octets, int32_t *sums) {
    nn_dsp_add_pairs(x, w, 2 * octets, sums, 2);
}

static void nn_dsp_add_one(const int8_t *x, const uint32_t *w, int32_t octets, int32_t *sums) {
    nn_dsp_add_pairs(x, w, 2 * octets, sums, 1);
}

#endif

/* `sum` and a quad of inputs, each 128 more. */
static inline uint32_t nn_dsp_sum_quad(const int8_t *x, uint32_t sum) {
    return nn_usada8(nn_load4(x) ^ 0x80808080U, 0, sum);
}

/* The sum of `octets` octets of inputs. */
static inline int32_t nn_dsp_sum_inputs(const int8_t *x, int32_t octets) {
    uint32_t sum = 0 - (uint32_t)octets * (128 * NN_DSP_OCTET);
    for (; octets >= 2; octets -= 2, x += 16) {
        sum = nn_dsp_sum_quad(x + 4, nn_dsp_sum_quad(x, sum));
        sum = nn_dsp_sum_quad(x + 12, nn_dsp_sum_quad(x + 8, sum));
    }
    return (int32_t)(octets > 0 ? nn_dsp_sum_quad(x + 4, nn_dsp_sum_quad(x, sum)) : sum);
}

#endif
