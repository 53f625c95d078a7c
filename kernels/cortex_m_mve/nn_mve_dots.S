/* The sums of two pixels times a block of output channels, which nn_mve_run_pairs has requantised.
 *
 * Two pixels by three channels are computed together: each vector of weights is loaded once and
 * multiplied with the inputs of both pixels. By hand, since what counts is what stays in registers:
 * VMLADAVA adds to even ones, one LDM brings in three channels' biases (each twice, for two
 * pixels), one STM puts six sums out, and the inputs of up to three vectors stay where they are for
 * all channels.
 *
 * Registers, at first and between the functions of this file:
 *   r1, r3        inputs of the first and of the second pixel
 *   r5            the weights; moved on behind those that are used
 *   r9            where sums go; moved on
 *   r11           bytes of a pixel's inputs
 *   r12           tiles of three channels
 *   stack         the frame of nn_mve_run_pairs, in it the channels left behind the tiles
 * Within them:
 *   r0 r4 r8      sums of the first pixel, of the tile's channels 0, 1 and 2
 *   r2 r6 r10     sums of the second pixel
 *   q0 to q5      inputs: of one pixel in even ones, of the other in odd ones
 *   q5 to q7      weights, in turns, so that a load need not wait for the products before it
 * All are free to change but r1, r3 and r11, which `rest` reads; lr counts loops.
 *
 * A tile's last vector may be shorter than 16 bytes. P0 holds the lanes that there are, and its
 * inputs are loaded with it: lanes beyond are zeros, and nothing behind the inputs is read.
 */
#include "nn_mve_function.h"
#include "nn_mve_pairs.h"

#ifdef __ARM_FEATURE_BTI_DEFAULT
#define VECTOR_CODE 48 /* bytes of a `landing` and a `vector` */
#else
#define VECTOR_CODE 44
#endif

    /* One vector of each of three channels' weights, times the vectors \x0 and \x1 of inputs. */
    .macro three x0, x1
    vldrb.u8    q6, [r5], #16           // channel 0
    vmladava.s8 r0, \x0, q6
    vmladava.s8 r2, \x1, q6
    vldrb.u8    q7, [r5], #16           // channel 1
    vmladava.s8 r4, \x0, q7
    vmladava.s8 r6, \x1, q7
    vldrb.u8    q6, [r5], #16           // channel 2
    vmladava.s8 r8, \x0, q6
    vmladava.s8 r10, \x1, q6
    .endm

    /* One vector of the three channels in nn_mve_dots_8 and nn_mve_dots_any. The core begins a product
     * while it loads for another: loads and products take turns, and what a product needs was loaded
     * before the one that precedes it. So q0, q1 (inputs) and q5 (channel 0) are loaded already;
     * \next0 and \next1 load the next inputs, between the last products of these. */
    .macro turns weights, next0, next1
    vmladava.s8 r0, q0, q5
    vldrb.u8    q6, [r5], #16           // channel 1
    vmladava.s8 r2, q1, q5
    vldrb.u8    q7, [r5], #16           // channel 2
    vmladava.s8 r4, q0, q6
    \weights
    vmladava.s8 r8, q0, q7
    \next0
    vmladava.s8 r6, q1, q6
    vmladava.s8 r10, q1, q7
    \next1
    .endm

    .macro weights                      // of channel 0
    vldrb.u8    q5, [r5], #16
    .endm

    .macro input0
    vldrb.u8    q0, [r1], #16
    .endm

    .macro input1
    vldrb.u8    q1, [r3], #16
    .endm

    .macro last0
    vpst
    vldrbt.u8   q0, [r1]
    .endm

    .macro last1
    vpst
    vldrbt.u8   q1, [r3]
    .endm

    .macro vector
    turns       weights, input0, input1
    .endm

    /* The last two vectors. Behind them r1 and r3, which are 16 (n - 1) bytes on, go back, and the
     * next tile's first inputs are loaded. */
    .macro two_vectors
    turns       weights, last0, last1
    vmladava.s8 r0, q0, q5
    vldrb.u8    q6, [r5], #16
    vmladava.s8 r2, q1, q5
    vldrb.u8    q7, [r5], #16
    vmladava.s8 r4, q0, q6
    ldr         lr, [sp]
    vmladava.s8 r8, q0, q7
    sub         r1, r1, lr
    vmladava.s8 r6, q1, q6
    sub         r3, r3, lr
    input0
    vmladava.s8 r10, q1, q7
    input1
    .endm

    .macro biases
    ldm.w       r5!, {r0, r2, r4, r6, r8, r10}
    .endm

    .macro put_sums
    stm.w       r9!, {r0, r2, r4, r6, r8, r10}
    .endm

/* Ends each function below: channels that are not three, one by one; returns to whoever called it.
 * r4, r6: the inputs, moved on. */
    .section .text.nn_mve_dots_rest, "ax", %progbits
    .p2align 2
    .type nn_mve_dots_rest, %function
    .thumb_func
nn_mve_dots_rest:
    .cfi_startproc
    .cfi_def_cfa_offset 4
    .cfi_offset lr, -4
    ldr         r12, [sp, #(4 + PAIRS_REST)]
    cmp         r12, #0
    beq         3f
2:
    ldm         r5!, {r0, r2}           // the bias, twice
    mov         r4, r1
    mov         r6, r3
    dlstp.8     lr, r11
1:
    vldrb.u8    q0, [r4], #16
    vldrb.u8    q1, [r5], #16
    vmladava.s8 r0, q0, q1
    vldrb.u8    q0, [r6], #16
    vmladava.s8 r2, q0, q1
    letp        lr, 1b
    stm         r9!, {r0, r2}
    subs        r12, r12, #1
    bne         2b
3:
    pop         {pc}
    end         nn_mve_dots_rest

/* Up to 16 inputs: q0 and q1 hold them for all channels. */
    function    nn_mve_dots_1
    push_lr
    vctp.8      r11
    vpstt
    vldrbt.u8   q0, [r1]
    vldrbt.u8   q1, [r3]
    wls         lr, r12, 2f
1:
    biases
    three       q0, q1
    put_sums
    le          lr, 1b
2:
    b           nn_mve_dots_rest
    end         nn_mve_dots_1

/* Up to 32 inputs, in q0 to q3. */
    function    nn_mve_dots_2
    push_lr
    sub         r0, r11, #16
    vctp.8      r0
    vldrb.u8    q0, [r1]
    vldrb.u8    q1, [r3]
    vpstt
    vldrbt.u8   q2, [r1, #16]
    vldrbt.u8   q3, [r3, #16]
    wls         lr, r12, 2f
1:
    biases
    three       q0, q1
    three       q2, q3
    put_sums
    le          lr, 1b
2:
    b           nn_mve_dots_rest
    end         nn_mve_dots_2

/* Up to 48 inputs, in q0 to q5. */
    function    nn_mve_dots_3
    push_lr
    sub         r0, r11, #32
    vctp.8      r0
    vldrb.u8    q0, [r1]
    vldrb.u8    q1, [r3]
    vldrb.u8    q2, [r1, #16]
    vldrb.u8    q3, [r3, #16]
    vpstt
    vldrbt.u8   q4, [r1, #32]
    vldrbt.u8   q5, [r3, #32]
    wls         lr, r12, 2f
1:
    biases
    three       q0, q1
    three       q2, q3
    three       q4, q5
    put_sums
    le          lr, 1b
2:
    b           nn_mve_dots_rest
    end         nn_mve_dots_3

/* 17 to 128 inputs, n = 2 to 8 vectors, loaded again for each tile. There is code for eight vectors
 * and no inner loop: each tile enters it so far before its last two that n vectors are left, which
 * is at r7 = 3f - VECTOR_CODE (n - 2). On the stack: 16 (n - 1). */
    function    nn_mve_dots_8
    push_lr
    sub         r2, r11, #1
    bic         r2, r2, #15             // 16 (n - 1)
    sub         r4, r11, r2
    vctp.8      r4
    lsr         r4, r2, #4
    sub         r4, r4, #1
    mov         r6, #VECTOR_CODE
    adr.w       r7, 3f
    mls         r7, r4, r6, r7
    orr         r7, r7, #1              // Thumb
    push        {r2}
    .cfi_adjust_cfa_offset 4
    cmp         r12, #0
    beq         2f
    input0
    input1
1:
    biases
    weights
    bx          r7
4:
    .rept       6
    landing
    vector
    .endr
3:
    .if         3b - 4b != 6 * VECTOR_CODE
    .error      "the code of a vector is not as long as VECTOR_CODE says"
    .endif
    landing
    two_vectors
    put_sums
    subs        r12, r12, #1
    bne         1b
    sub         r1, r1, #16
    sub         r3, r3, #16
2:
    pop         {r2}
    .cfi_adjust_cfa_offset -4
    b           nn_mve_dots_rest
    end         nn_mve_dots_8

/* Any number of inputs above 32, n vectors. If n is odd, a tile takes one vector first, else it jumps
 * over that (r7), then twos in a loop, then the last two. On the stack: 16 (n - 1), and the loop's
 * turns. */
    function    nn_mve_dots_any
    push_lr
    sub         r2, r11, #1
    bic         r2, r2, #15
    sub         r4, r11, r2
    vctp.8      r4
    lsr         r6, r2, #4
    sub         r6, r6, #1              // n - 2
    lsr         r4, r6, #1
    adr.w       r7, 7f
    tst         r6, #1
    beq         2f
    adr.w       r7, 3f
2:
    orr         r7, r7, #1              // Thumb
    push        {r2, r4}
    .cfi_adjust_cfa_offset 8
    cmp         r12, #0
    beq         6f
    input0
    input1
1:
    biases
    weights
    bx          r7
3:
    landing
    vector
7:
    landing
    ldr.w       lr, [sp, #4]
    wls         lr, lr, 5f
4:
    vector
    vector
    le          lr, 4b
5:
    two_vectors
    put_sums
    subs        r12, r12, #1
    bne         1b
    sub         r1, r1, #16
    sub         r3, r3, #16
6:
    pop         {r2, r4}
    .cfi_adjust_cfa_offset -8
    b           nn_mve_dots_rest
    end         nn_mve_dots_any

/* One pixel, given as both: its sums are computed once and written for both. r7: its inputs, moved
 * on. */
    function    nn_mve_dots_single
    push_lr
    cmp         r12, #0
    beq         2f
0:
    biases
    mov         r7, r1
    dlstp.8     lr, r11
1:
    vldrb.u8    q0, [r7], #16
    vldrb.u8    q1, [r5], #16
    vmladava.s8 r0, q0, q1
    vldrb.u8    q2, [r5], #16
    vmladava.s8 r4, q0, q2
    vldrb.u8    q1, [r5], #16
    vmladava.s8 r8, q0, q1
    letp        lr, 1b
    mov         r2, r0
    mov         r6, r4
    mov         r10, r8
    put_sums
    subs        r12, r12, #1
    bne         0b
2:
    b           nn_mve_dots_rest
    end         nn_mve_dots_single
