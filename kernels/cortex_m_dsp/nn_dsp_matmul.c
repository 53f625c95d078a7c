/* A few pixels times all output channels: see nn_dsp_matmul.h. */
#include "nn_dsp_matmul.h"

/* Two output channels' sums of each pixel in exact arithmetic; x: the first widened word. */
NN_OUTLINE void sum_pair(int32_t sums[2 * NN_DSP_PIXELS], const uint32_t *x, int32_t pixels,
                         const uint32_t *w, int32_t quads) {
    const uint32_t *end = w + 2 * quads;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
    for (; w != end; w++, x += pixels) {
        const uint32_t both = *w, even = nn_sxtb16(both);
        const uint32_t odd = nn_sxtb16_ror8(nn_ssub16(both, even));
        s0 = nn_smlad(even, x[0], s0);
        s1 = nn_smlad(odd, x[0], s1);
        if (pixels > 1) {
            s2 = nn_smlad(even, x[1], s2);
            s3 = nn_smlad(odd, x[1], s3);
        }
        if (pixels > 2) {
            s4 = nn_smlad(even, x[2], s4);
            s5 = nn_smlad(odd, x[2], s5);
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    sums[4] = s4;
    sums[5] = s5;
}

/* The general channels, over what the others' arithmetic made of them; x: the first widened word.
 */
NN_OUTLINE void multiply_general(const nn_dsp_constants *constants, int32_t pixels,
                                 const uint32_t *x, const nn_dsp_shape *shape, int8_t *out) {
    const int32_t quads = shape->quads, channels = shape->channels, stride = shape->stride;
    const int32_t pair = 2 * quads + 2 * (int32_t)sizeof(nn_dsp_channel) / 4; /* words */
    const uint32_t *first = (const uint32_t *)(const void *)(constants + 1);
    const int32_t end = nn_min(constants->general_end, channels);
    for (int32_t c = constants->general_first; c < end; c += 2) {
        const uint32_t *w = first + c / 2 * pair;
        const nn_dsp_channel *channel = (const nn_dsp_channel *)(const void *)(w + 2 * quads);
        int32_t sums[2 * NN_DSP_PIXELS];
        sum_pair(sums, x, pixels, w, quads);
        for (int32_t i = 0; i < nn_min(2, channels - c); i++) {
            for (int32_t p = 0; p < pixels; p++) {
                out[p * stride + c + i] =
                    nn_dsp_general_output(sums[2 * p + i], channel + i, &constants->common);
            }
        }
    }
}

#if NN_DSP

/* The three functions that follow differ in the number of pixels. Registers: r0 inputs, r1 the
 * stream, r2 and r3 a quad's weights, r4 the even channel's; stack: where the inputs start, where
 * in the unrolled loop to enter, the output and its stride, the ends of output and inputs. The
 * loop is left when the inputs are used up. */
#define UNROLLED "8"
#define ENTER(add_quads, bytes)                                                                    \
    "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                \
    "sub sp, #24\n"                                                                                \
    "ldrd r4, r5, [r3]\n" /* quads, stride */                                                      \
    "ldr r6, [r3, #8]\n"  /* pairs */                                                              \
    "add r6, r2, r6, lsl #1\n"                                                                     \
    "add r7, r4, #1\n" add_quads "adr.w r8, 2f\n"                                                  \
    "ands r9, r4, #" UNROLLED " - 1\n"                                                             \
    "it eq\n"                                                                                      \
    "moveq r9, #" UNROLLED "\n"                                                                    \
    "mov r10, #" bytes "\n"                                                                        \
    "mls r8, r9, r10, r8\n"                                                                        \
    "orr r8, r8, #1\n"                                                                             \
    "strd r0, r8, [sp]\n"                                                                          \
    "strd r2, r5, [sp, #8]\n"                                                                      \
    "strd r6, r7, [sp, #16]\n"                                                                     \
    "b.w 3f\n"                                                                                     \
    ".p2align 2\n"
#define LOOP "1: .rept " UNROLLED "\n"
#define LOOP_END                                                                                   \
    ".endr\n"                                                                                      \
    "2: ldr r4, [sp, #20]\n"                                                                       \
    "cmp r0, r4\n"                                                                                 \
    "bne.w 1b\n"
/* A channel's constants, then one output each: see nn_dsp_channel. `scale` makes twice the sum. */
#define CONSTANTS "ldmia r1!, {r2, r3, r4, r5}\n"
#define OUTPUT(sum, scale, address)                                                                \
    "add " sum ", r2, " sum ", " scale "\n"                                                        \
    "smmlar r0, " sum ", r3, r4\n"                                                                 \
    "add r0, r0, " sum ", asr #31\n"                                                               \
    "asr.w r0, r0, r5\n"                                                                           \
    "ssat r0, #8, r0\n"                                                                            \
    "strb r0, " address "\n"
#define EVEN(sum, address) OUTPUT(sum, "lsl #1", address)
#define ODD(sum, address) OUTPUT(sum, "asr #7", address)
/* The next pair, or the end; the first pair begins here. */
#define NEXT(pixel_sums)                                                                           \
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

#define ASSEMBLY __attribute__((naked, noinline))
#define ARGUMENTS                                                                                  \
    __attribute__((unused)) const uint32_t *x, __attribute__((unused)) const void *stream,         \
        __attribute__((unused)) int8_t *out, __attribute__((unused)) const nn_dsp_shape *shape

/* Even channel's sums in r8 to r10, 256 * odd + even channel's in r11, r12, lr; inputs r5 to r7. */
ASSEMBLY static void multiply3(ARGUMENTS) {
    __asm volatile(
        ENTER("add r7, r7, r7, lsl #1\n add r7, r0, r7, lsl #3\n", "68") /* */
        LOOP "ldrd r2, r3, [r1], #8\n"
             "ldmia.w r0!, {r5, r6, r7}\n"
             "sxtb16 r4, r2\n"
             "smlad r8, r4, r5, r8\n"
             "smlad r9, r4, r6, r9\n"
             "smlad r10, r4, r7, r10\n"
             "smlad r11, r2, r5, r11\n"
             "smlad r12, r2, r6, r12\n"
             "smlad lr, r2, r7, lr\n"
             "ldmia.w r0!, {r5, r6, r7}\n"
             "sxtb16 r4, r3\n"
             "smlad r8, r4, r5, r8\n"
             "smlad r9, r4, r6, r9\n"
             "smlad r10, r4, r7, r10\n"
             "smlad r11, r3, r5, r11\n"
             "smlad r12, r3, r6, r12\n"
             "smlad lr, r3, r7, lr\n" LOOP_END "sub r11, r11, r8\n"
             "sub r12, r12, r9\n"
             "sub lr, lr, r10\n"
             "ldrd r6, r7, [sp, #8]\n" CONSTANTS EVEN("r8", "[r6]") EVEN("r9", "[r6, r7]")
                 EVEN("r10", "[r6, r7, lsl #1]") "add r6, r6, #1\n" CONSTANTS ODD("r11", "[r6]")
                     ODD("r12", "[r6, r7]") ODD("lr", "[r6, r7, lsl #1]")
                         NEXT("r8, r9, r10, r11, r12, lr"));
}

/* Even channel's sums in r8 and r9, the others in r10 and r11; inputs r5 to r7 and r12. */
ASSEMBLY static void multiply2(ARGUMENTS) {
    __asm volatile(ENTER("add r7, r0, r7, lsl #4\n", "48") /* */
                   LOOP "ldrd r2, r3, [r1], #8\n"
                        "ldmia.w r0!, {r5, r6, r7, r12}\n"
                        "sxtb16 r4, r2\n"
                        "smlad r8, r4, r5, r8\n"
                        "smlad r9, r4, r6, r9\n"
                        "smlad r10, r2, r5, r10\n"
                        "smlad r11, r2, r6, r11\n"
                        "sxtb16 r4, r3\n"
                        "smlad r8, r4, r7, r8\n"
                        "smlad r9, r4, r12, r9\n"
                        "smlad r10, r3, r7, r10\n"
                        "smlad r11, r3, r12, r11\n" LOOP_END "sub r10, r10, r8\n"
                        "sub r11, r11, r9\n"
                        "ldrd r6, r7, [sp, #8]\n" CONSTANTS EVEN("r8", "[r6]")
                            EVEN("r9", "[r6, r7]") "add r6, r6, #1\n" CONSTANTS ODD("r10", "[r6]")
                                ODD("r11", "[r6, r7]") NEXT("r8, r9, r10, r11"));
}

/* Even channel's sum in r8, the other in r9; inputs r5 and r6. */
ASSEMBLY static void multiply1(ARGUMENTS) {
    __asm volatile(ENTER("add r7, r0, r7, lsl #3\n", "32") /* */
                   LOOP "ldrd r2, r3, [r1], #8\n"
                        "ldrd r5, r6, [r0], #8\n"
                        "sxtb16 r4, r2\n"
                        "smlad r8, r4, r5, r8\n"
                        "smlad r9, r2, r5, r9\n"
                        "sxtb16 r4, r3\n"
                        "smlad r8, r4, r6, r8\n"
                        "smlad r9, r3, r6, r9\n" LOOP_END "sub r9, r9, r8\n"
                        "ldr r6, [sp, #8]\n" CONSTANTS EVEN("r8", "[r6]") "add r6, r6, #1\n" /* */
                   CONSTANTS ODD("r9", "[r6]") NEXT("r8, r9"));
}

static void multiply(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                     const nn_dsp_shape *shape) {
    if (pixels == 3) {
        multiply3(x, stream, out, shape);
    } else if (pixels == 2) {
        multiply2(x, stream, out, shape);
    } else {
        multiply1(x, stream, out, shape);
    }
}

#else

/* The same arithmetic, step by step. */
static void multiply(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                     const nn_dsp_shape *shape) {
    const uint32_t *w = (const uint32_t *)stream;
    for (int32_t pair = 0; pair < shape->pairs; pair++, out += 2) {
        const nn_dsp_channel *c = (const nn_dsp_channel *)(const void *)(w + 2 * shape->quads);
        for (int32_t p = 0; p < pixels; p++) {
            int32_t even = (int32_t)x[p], both = (int32_t)x[pixels + p];
            for (int32_t i = 0; i < 2 * shape->quads; i++) {
                const uint32_t inputs = x[2 * pixels + i * pixels + p];
                even = nn_smlad(nn_sxtb16(w[i]), inputs, even);
                both = nn_smlad(w[i], inputs, both);
            }
            out[p * shape->stride] = (int8_t)nn_dsp_output(even, c);
            out[p * shape->stride + 1] =
                (int8_t)nn_dsp_output((int32_t)((uint32_t)both - (uint32_t)even) >> 8, c + 1);
        }
        w = (const uint32_t *)(const void *)(c + 2);
    }
}

#endif

/* The last channel of an odd number has a partner whose outputs nobody wants. */
NN_OUTLINE void multiply_last(int32_t pixels, const uint32_t *x, const void *stream, int8_t *out,
                              const nn_dsp_shape *all) {
    const nn_dsp_shape shape = {all->quads, 2, 1, 2};
    int8_t pair[2 * NN_DSP_PIXELS];
    multiply(pixels, x, stream, pair, &shape);
    for (int32_t p = 0; p < pixels; p++) {
        out[p * all->stride] = pair[2 * p];
    }
}

void nn_dsp_matmul(const nn_dsp_constants *constants, int32_t pixels, const uint32_t *scratch,
                   const nn_dsp_shape *shape, int8_t *out) {
    const int32_t channels = shape->channels;
    const uint32_t *x = scratch + NN_DSP_ZEROS - 2 * pixels;
    if (shape->pairs > 0) {
        multiply(pixels, x, constants + 1, out, shape);
    }
    if ((channels & 1) != 0) {
        const int32_t pair = 8 * shape->quads + 2 * (int32_t)sizeof(nn_dsp_channel);
        multiply_last(pixels, x, (const int8_t *)(constants + 1) + shape->pairs * pair,
                      out + channels - 1, shape);
    }
    nn_dsp_clamp_pixels(out, pixels, channels, shape->stride, &constants->common);
    if (constants->general_first < constants->general_end) {
        multiply_general(constants, pixels, x + 2 * pixels, shape, out);
    }
}
