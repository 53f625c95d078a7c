/* A tile of pixels times a pair of output channels, again and again: what the assembly of
 * nn_dsp_tile3.h, 2 and 1, for as many pixels, has in common. See nn_dsp_matmul.h for the operands.
 *
 *   r0          inputs, read forward; while a pair's outputs are made: a step of the arithmetic
 *   r1          the stream: weights of a pair, then its two nn_dsp_channel; read forward
 *   r2, r3      a quad's weights; then, with r4 and r5, an nn_dsp_channel
 *   r4          (k0, k2) or (k1, k3) of the even channel alone
 *   r5 up       inputs of the pixels; then r6: the output, r7: bytes from pixel to pixel
 *   r8 up       sums: of the even channel, a pixel each; then of both; then the outputs
 *   [sp]        where the inputs start; where in the unrolled loop to enter
 *   [sp, #8]    the output; bytes from pixel to pixel
 *   [sp, #16]   the ends of the output and of the inputs
 *   [sp, #24]   in the paired loop: bytes of weights that its first round leaves out
 *
 * Six zero words before the inputs start the sums. Eight quads are unrolled; the loop is entered
 * so that its last round is whole, and left when the inputs are used up.
 *
 * Outputs, see nn_dsp_channel: with t = bias + 2 * sum (of the odd channel: 2 * sum is 2^-7 times
 * the difference of its sums)
 *   step = offset + (t >> 31)
 *   output = saturated (round(t * multiplier / 2^32) + step) >> shift
 *
 * Schedule, of all three: a Cortex-M7 issues one multiplication a cycle, and beside it an
 * extension, a shift or a store whose operands are ready; loads of several words go alone. So the
 * products of the words as packed come first, and the extension of the same words goes beside
 * them; and the pixels' outputs are made step by step in turns, with the next channel loaded as
 * soon as the shift of this one has been used. A Cortex-M4 takes one instruction a cycle in any
 * order, and one more where a load's register is used at once: nowhere but where nothing else is
 * left to do.
 *
 * Where the compiler says that the core is a Cortex-M7, two and three pixels have a loop of their
 * own (NN_DSP_TILE_PAIRED): a load of one word stands beside each multiplication, at an offset that
 * the round leaves as it is, as stepped addresses wait for one another. That takes more
 * instructions, of which any other core would execute one after the other. A quad's first words are
 * loaded in the quad before it; the first of a round before the round.
 */
#ifndef NN_DSP_TILE_H
#define NN_DSP_TILE_H

#include "nn_dsp_matmul.h"

#if NN_DSP

/* Of the cores with Armv7E-M the Cortex-M7 alone has such a unit for floats; GCC does not tell. */
#if defined(__ARM_FPV5__) && __ARM_ARCH == 7
#define NN_DSP_TILE_PAIRED 1
#else
#define NN_DSP_TILE_PAIRED 0
#endif

#define NN_DSP_TILE_UNROLLED "8"
#define NN_DSP_TILE_ENTER(add_quads, bytes)                                                        \
    "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                \
    "sub sp, #24\n"                                                                                \
    "ldrd r4, r5, [r3]\n" /* quads, stride */                                                      \
    "ldr r6, [r3, #8]\n"  /* pairs */                                                              \
    "add r6, r2, r6, lsl #1\n"                                                                     \
    "add r7, r4, #1\n" add_quads "adr.w r8, 2f\n"                                                  \
    "ands r9, r4, #" NN_DSP_TILE_UNROLLED " - 1\n"                                                 \
    "it eq\n"                                                                                      \
    "moveq r9, #" NN_DSP_TILE_UNROLLED "\n"                                                        \
    "mov r10, #" bytes "\n"                                                                        \
    "mls r8, r9, r10, r8\n"                                                                        \
    "orr r8, r8, #1\n"                                                                             \
    "strd r0, r8, [sp]\n"                                                                          \
    "strd r2, r5, [sp, #8]\n"                                                                      \
    "strd r6, r7, [sp, #16]\n"                                                                     \
    "b.w 3f\n"                                                                                     \
    ".p2align 2\n"
#define NN_DSP_TILE_LOOP "1: .rept " NN_DSP_TILE_UNROLLED "\n"
#define NN_DSP_TILE_LOOP_END                                                                       \
    ".endr\n"                                                                                      \
    "2: ldr r4, [sp, #20]\n"                                                                       \
    "cmp r0, r4\n"                                                                                 \
    "bne.w 1b\n"
/* The next pair, or the end; the first pair begins here. */
#define NN_DSP_TILE_NEXT(pixel_sums)                                                               \
    "add r6, r6, #1\n"                                                                             \
    "ldr r2, [sp, #16]\n"                                                                          \
    "str r6, [sp, #8]\n"                                                                           \
    "cmp r6, r2\n"                                                                                 \
    "beq 4f\n"                                                                                     \
    "3: ldr r0, [sp]\n"                                                                            \
    "ldmia.w r0!, {" pixel_sums "}\n"                                                              \
    "ldr pc, [sp, #4]\n"                                                                           \
    "4: add sp, #24\n"                                                                             \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

/* The paired loop. `back`: takes the bytes of r4, those of the weights of quads that the first
 * round leaves out, from r0 as well, so often as pixels have words; `round`: bytes of inputs of a
 * round. A quad has 4 * `more` bytes of code more than a round's last one, which loads nothing
 * ahead. */
#define NN_DSP_TILE_PAIRED_ENTER(add_quads, bytes, more)                                           \
    "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                \
    "sub sp, #32\n"                                                                                \
    "ldrd r4, r5, [r3]\n" /* quads, stride */                                                      \
    "ldr r6, [r3, #8]\n"  /* pairs */                                                              \
    "add r6, r2, r6, lsl #1\n"                                                                     \
    "add r7, r4, #1\n" add_quads "adr.w r8, 2f + 4 * " more "\n"                                   \
    "ands r9, r4, #" NN_DSP_TILE_UNROLLED " - 1\n"                                                 \
    "it eq\n"                                                                                      \
    "moveq r9, #" NN_DSP_TILE_UNROLLED "\n"                                                        \
    "mov r10, #" bytes "\n"                                                                        \
    "mls r8, r9, r10, r8\n"                                                                        \
    "orr r8, r8, #1\n"                                                                             \
    "rsb r9, r9, #" NN_DSP_TILE_UNROLLED "\n"                                                      \
    "lsl r9, r9, #3\n"                                                                             \
    "strd r0, r8, [sp]\n"                                                                          \
    "strd r2, r5, [sp, #8]\n"                                                                      \
    "strd r6, r7, [sp, #16]\n"                                                                     \
    "str r9, [sp, #24]\n"                                                                          \
    "b.w 3f\n"                                                                                     \
    ".p2align 2\n"
#define NN_DSP_TILE_PAIRED_ROUND(quad, last)                                                       \
    "1: .set nn_quad, 0\n"                                                                         \
    ".rept " NN_DSP_TILE_UNROLLED " - 1\n" quad ".set nn_quad, nn_quad + 1\n"                      \
    ".endr\n" last
#define NN_DSP_TILE_PAIRED_ROUND_END(round)                                                        \
    "2: ldr r4, [sp, #20]\n"                                                                       \
    "add r0, r0, #" round "\n"                                                                     \
    "add r1, r1, #8 * " NN_DSP_TILE_UNROLLED "\n"                                                  \
    "cmp r0, r4\n"                                                                                 \
    "beq 5f\n"                                                                                     \
    "ldrd r5, r6, [r0]\n"                                                                          \
    "ldr r2, [r1]\n"                                                                               \
    "b.w 1b\n"                                                                                     \
    "5:\n"
#define NN_DSP_TILE_PAIRED_NEXT(pixel_sums, back)                                                  \
    "add r6, r6, #1\n"                                                                             \
    "ldr r2, [sp, #16]\n"                                                                          \
    "str r6, [sp, #8]\n"                                                                           \
    "cmp r6, r2\n"                                                                                 \
    "beq 4f\n"                                                                                     \
    "3: ldr r0, [sp]\n"                                                                            \
    "ldr r4, [sp, #24]\n"                                                                          \
    "ldmia.w r0!, {" pixel_sums "}\n"                                                              \
    "ldr r2, [r1]\n"                                                                               \
    "ldrd r5, r6, [r0]\n"                                                                          \
    "sub r1, r1, r4\n" back "ldr pc, [sp, #4]\n"                                                   \
    "4: add sp, #32\n"                                                                             \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

#define NN_DSP_TILE_ARGUMENTS                                                                      \
    __attribute__((unused)) const uint32_t *x, __attribute__((unused)) const void *stream,         \
        __attribute__((unused)) int8_t *out, __attribute__((unused)) const nn_dsp_shape *shape

#endif
#endif
