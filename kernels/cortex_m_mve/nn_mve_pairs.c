/* Pairs of pixels times all output channels: dot products of 16 bytes, then requantisation.
 *
 * By hand, since what counts is what stays in registers: VMLADAVA adds to even ones, one LDM brings
 * in three channels' biases (each twice, for two pixels), one STM puts six sums out, and the inputs
 * of up to three vectors stay where they are for all channels.
 *
 * Registers of the dots: r0 the arguments at first; r1, r3 the pixels' inputs; r5 the weights,
 * moved on; r9 the sums; r11 the inputs' bytes; r12 the tiles of three channels. Sums are in r0, r2
 * (the first channel's, of both pixels), r4, r6, r8, r10. Single channels are left to `rest`.
 */
#include "nn_mve_pairs.h"

#define SUMS "{r0, r2, r4, r6, r8, r10}"

/* One vector of three channels' weights times two vectors of inputs. */
#define THREE(x0, x1)                                                                              \
    "vldrb.u8 q6, [r5], #16\n"                                                                     \
    "vmladava.s8 r0, " x0 ", q6\n"                                                                 \
    "vmladava.s8 r2, " x1 ", q6\n"                                                                 \
    "vldrb.u8 q7, [r5], #16\n"                                                                     \
    "vmladava.s8 r4, " x0 ", q7\n"                                                                 \
    "vmladava.s8 r6, " x1 ", q7\n"                                                                 \
    "vldrb.u8 q6, [r5], #16\n"                                                                     \
    "vmladava.s8 r8, " x0 ", q6\n"                                                                 \
    "vmladava.s8 r10, " x1 ", q6\n"
#define LOADED(place) "vldrb.u8 q0, [r1" place "\n vldrb.u8 q1, [r3" place "\n" THREE("q0", "q1")
#define LAST "vpstt\n vldrbt.u8 q0, [r1]\n vldrbt.u8 q1, [r3]\n" THREE("q0", "q1")

/* Channels that are not three, their number on the caller's stack; r1 and r3 as at first. */
static NN_MVE_NAKED void rest(void) {
    __asm volatile("ldr r12, [sp, #8]\n"
                   "cmp r12, #0\n"
                   "beq 3f\n"
                   "2:\n"
                   "ldm r5!, {r0, r2}\n"
                   "mov r4, r1\n"
                   "mov r6, r3\n"
                   "dlstp.8 lr, r11\n"
                   "1:\n"
                   "vldrb.u8 q0, [r4], #16\n"
                   "vldrb.u8 q1, [r5], #16\n"
                   "vmladava.s8 r0, q0, q1\n"
                   "vldrb.u8 q0, [r6], #16\n"
                   "vmladava.s8 r2, q0, q1\n"
                   "letp lr, 1b\n"
                   "stm r9!, {r0, r2}\n"
                   "subs r12, r12, #1\n"
                   "bne 2b\n"
                   "3:\n"
                   "pop {pc}\n");
}

NN_MVE_NAKED void nn_mve_dots_1(void) {
    __asm volatile("push {lr}\n"
                   "vctp.8 r11\n"
                   "vpstt\n"
                   "vldrbt.u8 q0, [r1]\n"
                   "vldrbt.u8 q1, [r3]\n"
                   "wls lr, r12, 2f\n"
                   "1:\n"
                   "ldm r5!, " SUMS "\n" THREE("q0", "q1") "stm r9!, " SUMS "\n"
                                                           "le lr, 1b\n"
                                                           "2:\n"
                                                           "b %c0\n"
                   :
                   : "i"(rest));
}

NN_MVE_NAKED void nn_mve_dots_2(void) {
    __asm volatile("push {lr}\n"
                   "sub r0, r11, #16\n"
                   "vctp.8 r0\n"
                   "vldrb.u8 q0, [r1]\n"
                   "vldrb.u8 q1, [r3]\n"
                   "vpstt\n"
                   "vldrbt.u8 q2, [r1, #16]\n"
                   "vldrbt.u8 q3, [r3, #16]\n"
                   "wls lr, r12, 2f\n"
                   "1:\n"
                   "ldm r5!, " SUMS "\n" THREE("q0", "q1") THREE("q2", "q3") "stm r9!, " SUMS "\n"
                                                                             "le lr, 1b\n"
                                                                             "2:\n"
                                                                             "b %c0\n"
                   :
                   : "i"(rest));
}

NN_MVE_NAKED void nn_mve_dots_3(void) {
    __asm volatile("push {lr}\n"
                   "sub r0, r11, #32\n"
                   "vctp.8 r0\n"
                   "vldrb.u8 q0, [r1]\n"
                   "vldrb.u8 q1, [r3]\n"
                   "vldrb.u8 q2, [r1, #16]\n"
                   "vldrb.u8 q3, [r3, #16]\n"
                   "vpstt\n"
                   "vldrbt.u8 q4, [r1, #32]\n"
                   "vldrbt.u8 q5, [r3, #32]\n"
                   "wls lr, r12, 2f\n"
                   "1:\n"
                   "ldm r5!, " SUMS "\n" THREE("q0", "q1") THREE("q2", "q3")
                       THREE("q4", "q5") "stm r9!, " SUMS "\n"
                                         "le lr, 1b\n"
                                         "2:\n"
                                         "b %c0\n"
                   :
                   : "i"(rest));
}

/* The loop is entered so far before its end that n vectors are left; each takes 44 bytes of code.
 * The inputs' addresses are those of the last vector. */
NN_MVE_NAKED void nn_mve_dots_8(void) {
    __asm volatile("push {lr}\n"
                   "ldr r2, [r0, #96]\n"
                   "add r1, r1, r2\n"
                   "add r3, r3, r2\n"
                   "sub r4, r11, r2\n"
                   "vctp.8 r4\n"
                   "lsr r4, r2, #4\n"
                   "mov r6, #44\n"
                   "adr.w r7, 3f\n"
                   "mls r7, r4, r6, r7\n"
                   "orr r7, r7, #1\n"
                   "push {r2}\n"
                   "wls lr, r12, 2f\n"
                   "1:\n"
                   "ldm.w r5!, " SUMS "\n"
                   "bx r7\n" LOADED(", #-112]") LOADED(", #-96]") LOADED(", #-80]")
                       LOADED(", #-64]") LOADED(", #-48]") LOADED(", #-32]")
                           LOADED(", #-16]") "3:\n" LAST "stm r9!, " SUMS "\n"
                                             "le lr, 1b\n"
                                             "2:\n"
                                             "pop {r2}\n"
                                             "sub r1, r1, r2\n"
                                             "sub r3, r3, r2\n"
                                             "b %c0\n"
                   :
                   : "i"(rest));
}

/* An odd one first if n is odd, then twos, the last two outside of the loop; 3 vectors at least. */
NN_MVE_NAKED void nn_mve_dots_any(void) {
    __asm volatile("push {lr}\n"
                   "ldr r2, [r0, #96]\n"
                   "sub r4, r11, r2\n"
                   "vctp.8 r4\n"
                   "lsr r4, r2, #5\n"
                   "sub r4, r4, #1\n"
                   "lsr r6, r2, #4\n"
                   "adr.w r7, 3f\n"
                   "tst r6, #1\n"
                   "beq 2f\n"
                   "add r7, r7, #44\n"
                   "add r4, r4, #1\n"
                   "2:\n"
                   "orr r7, r7, #1\n"
                   "push {r2, r4}\n"
                   "cmp r12, #0\n"
                   "beq 6f\n"
                   "1:\n"
                   "ldm.w r5!, " SUMS "\n"
                   "bx r7\n"
                   "3:\n" LOADED("], #16") "ldr.w lr, [sp, #4]\n"
                                           "wls lr, lr, 5f\n"
                                           "4:\n"
                                           "vldrb.u8 q2, [r1, #16]\n"
                                           "vldrb.u8 q3, [r3, #16]\n" LOADED("], #32")
                                               THREE("q2", "q3") "le lr, 4b\n"
                                                                 "5:\n" LOADED("], #16") LAST
                   "ldr lr, [sp]\n"
                   "sub r1, r1, lr\n"
                   "sub r3, r3, lr\n"
                   "stm r9!, " SUMS "\n"
                   "subs r12, r12, #1\n"
                   "bne 1b\n"
                   "6:\n"
                   "pop {r2, r4}\n"
                   "b %c0\n"
                   :
                   : "i"(rest));
}

/* One pixel: its sums are written for both. */
NN_MVE_NAKED void nn_mve_dots_single(void) {
    __asm volatile("push {lr}\n"
                   "cmp r12, #0\n"
                   "beq 2f\n"
                   "0:\n"
                   "ldm r5!, " SUMS "\n"
                   "mov r7, r1\n"
                   "dlstp.8 lr, r11\n"
                   "1:\n"
                   "vldrb.u8 q0, [r7], #16\n"
                   "vldrb.u8 q1, [r5], #16\n"
                   "vmladava.s8 r0, q0, q1\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r4, q0, q2\n"
                   "vldrb.u8 q1, [r5], #16\n"
                   "vmladava.s8 r8, q0, q1\n"
                   "letp lr, 1b\n"
                   "mov r2, r0\n"
                   "mov r6, r4\n"
                   "mov r10, r8\n"
                   "stm r9!, " SUMS "\n"
                   "subs r12, r12, #1\n"
                   "bne 0b\n"
                   "2:\n"
                   "b %c0\n"
                   :
                   : "i"(rest));
}

/* Four channels of both pixels: sums at r1, factors at r2, outputs at r3, zero point in r6. */
#define SUMS_IN                                                                                    \
    "vld20.32 {q0, q1}, [r1]\n"                                                                    \
    "vld21.32 {q0, q1}, [r1]!\n"                                                                   \
    "vldrw.u32 q2, [r2], #32\n"                                                                    \
    "vldrw.u32 q3, [r2, #-16]\n"
#define MULTIPLY                                                                                   \
    "vqrdmulh.s32 q0, q0, q2\n"                                                                    \
    "vqrdmulh.s32 q1, q1, q2\n"
#define SHIFT                                                                                      \
    "vrshl.s32 q0, q0, q3\n"                                                                       \
    "vrshl.s32 q1, q1, q3\n"
/* Requantisation by mode; r7 is 1. */
#define PLAIN SUMS_IN MULTIPLY SHIFT
#define ODD SUMS_IN MULTIPLY "vqdmlah.s32 q0, q0, r7\n vqdmlah.s32 q1, q1, r7\n" SHIFT
#define GENERAL                                                                                    \
    SUMS_IN "vmov.i32 q7, #0\n"                                                                    \
            "vmax.s32 q7, q7, q3\n"                                                                \
            "vshl.s32 q0, q0, q7\n"                                                                \
            "vshl.s32 q1, q1, q7\n" MULTIPLY "vmov.i32 q7, #0\n"                                   \
            "vmin.s32 q3, q3, q7\n"                                                                \
            "vand q7, q0, q3\n"                                                                    \
            "vshr.s32 q7, q7, #31\n"                                                               \
            "vadd.i32 q0, q0, q7\n"                                                                \
            "vand q7, q1, q3\n"                                                                    \
            "vshr.s32 q7, q7, #31\n"                                                               \
            "vadd.i32 q1, q1, q7\n" SHIFT
#define OUT(store)                                                                                 \
    "vqmovnb.s32 q0, q0\n"                                                                         \
    "vqmovnt.s32 q0, q1\n"                                                                         \
    "vqadd.s16 q0, q0, r6\n"                                                                       \
    "vmax.s16 q0, q0, q4\n"                                                                        \
    "vmin.s16 q0, q0, q5\n" store
#define ALL "vstrb.16 q0, [r3, q6]\n"
#define SOME "vpst\n vstrbt.16 q0, [r3, q6]\n"
/* All channels that r4 counts in one mode; the last ones, which are not four, in r5. */
#define FINISH(body)                                                                               \
    "wls lr, r4, 2f\n"                                                                             \
    "1:\n" body                                                                                    \
    OUT(ALL) "add r3, r3, #4\n"                                                                    \
             "le lr, 1b\n"                                                                         \
             "2:\n"                                                                                \
             "cbz r5, 3f\n" body OUT(SOME) "3:\n"

/* On the stack: 0 the arguments, 4 single channels of the block, 8 factors, 12 outputs, 16 channels
 * left, 20 the weights. */
NN_MVE_NAKED void nn_mve_run_pairs(NN_MVE_IN_ASM nn_mve_pairs *p) {
    __asm volatile(
        "push {r4-r11, lr}\n"
        "vpush {d8-d15}\n"
        "sub sp, sp, #28\n"
        "str r0, [sp]\n"
        /* a pair */
        "10:\n"
        "ldrd r1, r2, [r0, #76]\n"
        "ldr r3, [r0, #60]\n"
        "ldr r5, [r0, #72]\n"
        "strd r1, r3, [sp, #8]\n"
        /* a block of channels: 16 tiles of three, or what is left, the last tile one short maybe */
        "11:\n"
        "str r2, [sp, #16]\n"
        "mov r12, #16\n"
        "movs r4, #0\n"
        "cmp r2, #48\n"
        "bge 12f\n"
        "movs r4, #3\n"
        "add r12, r2, #1\n"
        "udiv r12, r12, r4\n"
        "mls r4, r12, r4, r2\n"
        "bic r4, r4, r4, asr #31\n"
        "12:\n"
        "str r4, [sp, #4]\n"
        "ldrd r1, r3, [r0, #48]\n"
        "ldr r11, [r0, #92]\n"
        "ldrd r4, r9, [r0, #100]\n"
        "blx r4\n"
        "ldr r0, [sp]\n"
        "str r5, [sp, #20]\n"
        "ldr r1, [r0, #104]\n"
        "ldrd r2, r3, [sp, #8]\n"
        "ldr r8, [sp, #16]\n"
        "ldrd r6, r9, [r0, #84]\n"
        "vldrw.u32 q4, [r0]\n"
        "vldrw.u32 q5, [r0, #16]\n"
        "vldrw.u32 q6, [r0, #32]\n"
        "movs r4, #12\n"
        "movs r5, #0\n"
        "subs r8, r8, #48\n"
        "bge 13f\n"
        "add r5, r8, #48\n"
        "lsrs r4, r5, #2\n"
        "and r5, r5, #3\n"
        "lsl r7, r5, #1\n"
        "vctp.16 r7\n"
        "13:\n"
        "movs r7, #1\n"
        "cmp r9, #1\n"
        "beq 15f\n"
        "bgt 16f\n" FINISH(PLAIN) "b 17f\n"
                                  "15:\n" FINISH(ODD) "b 17f\n"
                                                      "16:\n" FINISH(
                                                          GENERAL) "17:\n"
                                                                   "ldr r5, [sp, #20]\n"
                                                                   "strd r2, r3, [sp, #8]\n"
                                                                   "mov r2, r8\n"
                                                                   "cmp r8, #0\n"
                                                                   "bgt 11b\n"
                                                                   "ldrd r1, r3, [r0, #48]\n"
                                                                   "ldrd r4, r5, [r0, #56]\n"
                                                                   "ldrd r6, r7, [r0, #64]\n"
                                                                   "add r1, r1, r4\n"
                                                                   "add r3, r3, r4\n"
                                                                   "add r5, r5, r6\n"
                                                                   "strd r1, r3, [r0, #48]\n"
                                                                   "str r5, [r0, #60]\n"
                                                                   "subs r7, r7, #1\n"
                                                                   "str r7, [r0, #68]\n"
                                                                   "bne 10b\n"
                                                                   "add sp, sp, #28\n"
                                                                   "vpop {d8-d15}\n"
                                                                   "pop {r4-r11, pc}\n");
}
