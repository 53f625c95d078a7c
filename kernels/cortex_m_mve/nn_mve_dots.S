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
 *   q6, q7        weights, in turns, so that a load need not wait for the products before it
 * All are free to change but r1, r3 and r11, which `rest` reads; lr counts loops.
 *
 * A tile's last vector may be shorter than 16 bytes. P0 holds the lanes that there are, and its
 * inputs are loaded with it: lanes beyond are zeros, and nothing behind the inputs is read.
 */
#include "nn_mve_function.h"
#include "nn_mve_pairs.h"

#ifdef __ARM_FEATURE_BTI_DEFAULT
#define VECTOR_CODE 48 /* bytes of `three_at` */
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

    /* As `three`, of inputs that lie \at bytes behind r1 and r3; nn_mve_dots_8 may enter here. */
    .macro three_at at
    landing
    vldrb.u8    q0, [r1, #\at]
    vldrb.u8    q1, [r3, #\at]
    three       q0, q1
    .endm

    /* As `three`, of the inputs at r1 and r3, which are moved on by \step bytes. */
    .macro three_then step
    vldrb.u8    q0, [r1], #\step
    vldrb.u8    q1, [r3], #\step
    three       q0, q1
    .endm

    /* As `three`, of the last inputs, at r1 and r3. */
    .macro three_last
    vpstt
    vldrbt.u8   q0, [r1]
    vldrbt.u8   q1, [r3]
    three       q0, q1
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
 * and no inner loop: each tile enters it so far before its end that n vectors are left, which is at
 * r7 = 3f - VECTOR_CODE (n - 1). r1 and r3 point to the last vector meanwhile. */
    function    nn_mve_dots_8
    push_lr
    sub         r2, r11, #1
    bic         r2, r2, #15             // 16 (n - 1)
    add         r1, r1, r2
    add         r3, r3, r2
    sub         r4, r11, r2
    vctp.8      r4
    lsr         r4, r2, #4
    mov         r6, #VECTOR_CODE
    adr.w       r7, 3f
    mls         r7, r4, r6, r7
    orr         r7, r7, #1              // Thumb
    push        {r2}
    .cfi_adjust_cfa_offset 4
    wls         lr, r12, 2f
1:
    biases
    bx          r7
4:
    three_at    -112
    three_at    -96
    three_at    -80
    three_at    -64
    three_at    -48
    three_at    -32
    three_at    -16
3:
    .if         3b - 4b != 7 * VECTOR_CODE
    .error      "the code of a vector is not as long as VECTOR_CODE says"
    .endif
    landing
    three_last
    put_sums
    le          lr, 1b
2:
    pop         {r2}
    .cfi_adjust_cfa_offset -4
    sub         r1, r1, r2
    sub         r3, r3, r2
    b           nn_mve_dots_rest
    end         nn_mve_dots_8

/* Any number of inputs above 32, n vectors. A tile takes one vector first if n is odd, else it jumps
 * over that (r7), then twos in a loop, then the last two. On the stack: 16 (n - 1), and the loop's
 * turns. */
    function    nn_mve_dots_any
    push_lr
    sub         r2, r11, #1
    bic         r2, r2, #15
    sub         r4, r11, r2
    vctp.8      r4
    lsr         r4, r2, #5
    sub         r4, r4, #1              // turns, if n is odd
    lsr         r6, r2, #4
    adr.w       r7, 3f
    tst         r6, #1                  // n - 1
    beq         2f
    adr.w       r7, 7f
    add         r4, r4, #1
2:
    orr         r7, r7, #1              // Thumb
    push        {r2, r4}
    .cfi_adjust_cfa_offset 8
    cmp         r12, #0
    beq         6f
1:
    biases
    bx          r7
3:
    landing
    three_then  16
7:
    landing
    ldr.w       lr, [sp, #4]
    wls         lr, lr, 5f
4:
    vldrb.u8    q2, [r1, #16]
    vldrb.u8    q3, [r3, #16]
    three_then  32
    three       q2, q3
    le          lr, 4b
5:
    three_then  16
    three_last
    ldr         lr, [sp]
    sub         r1, r1, lr
    sub         r3, r3, lr
    put_sums
    subs        r12, r12, #1
    bne         1b
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
