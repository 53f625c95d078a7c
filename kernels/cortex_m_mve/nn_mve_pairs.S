/* Pairs of pixels times all output channels: has a block of channels' sums computed (nn_mve_dots.S),
 * requantises them, and puts them out.
 *
 * Sums lie by channel, of each the first pixel's before the second's, so VLD2 brings four channels
 * of the pixels into q0 and q1. Narrowed, these are the even and the odd halfwords of q7, and one
 * scattering store puts all eight out: element i goes to offsets[i].
 *
 * Registers while a block is requantised:
 *   r0            nn_mve_pairs
 *   r1            the sums, moved on
 *   r2            the factors, moved on: four multipliers, then four shifts, 0 or less: to the right
 *   r3            the first pixel's outputs, moved on
 *   r4, lr        vectors of four channels; turns of the loop
 *   r5            the weights behind those of the block
 *   r6            channels behind the last four
 *   r7            1 where the mode is NN_MVE_ODD
 *   r8            channels left behind the block; 0 or less: none
 *   r9, r10       the mode, the zero point
 *   r11           bytes of a pixel's inputs, as the dots find and leave it
 *   q0, q1        sums of the first and of the second pixel
 *   q2, q3        multipliers, shifts
 *   q7            a mask of signs; then the outputs of both pixels
 *   q4, q5, q6    low and high clamps, offsets
 *   P0            the lanes of the last outputs, where they are not four channels
 */
#include "nn_mve_function.h"
#include "nn_mve_pairs.h"

    /* Arithmetic and loads take turns, as the core begins one while it works on the other: q0 and q1
     * are loaded as soon as the outputs before them are narrow. */

    .macro first_sums
    vld20.32    {q0, q1}, [r1]
    vld21.32    {q0, q1}, [r1]!
    .endm

    .macro multipliers
    vldrw.u32   q2, [r2], #32
    .endm

    .macro shifts
    vldrw.u32   q3, [r2, #-16]
    .endm

    .macro multiply
    vqrdmulh.s32 q0, q0, q2
    vqrdmulh.s32 q1, q1, q2
    .endm

    .macro shift_right
    vrshl.s32   q0, q0, q3
    vrshl.s32   q1, q1, q3
    .endm

    /* Requantises in the modes NN_MVE_PLAIN, NN_MVE_ODD and NN_MVE_GENERAL; nn_mve.h says why
     * negative quotients are made less by 1 in the latter two. */
    .macro plain
    multipliers
    vqrdmulh.s32 q0, q0, q2
    shifts
    vqrdmulh.s32 q1, q1, q2
    shift_right
    .endm

    .macro odd
    multipliers
    vqrdmulh.s32 q0, q0, q2
    shifts
    vqrdmulh.s32 q1, q1, q2
    vqdmlah.s32 q0, q0, r7
    vqdmlah.s32 q1, q1, r7
    shift_right
    .endm

    .macro general
    multipliers
    vmov.i32    q7, #0
    shifts
    vmax.s32    q7, q7, q3
    vshl.s32    q0, q0, q7              // to the left
    vshl.s32    q1, q1, q7
    multiply
    vmov.i32    q7, #0
    vmin.s32    q3, q3, q7
    vand        q7, q0, q3              // the sign bit: negative, and shifted to the right
    vshr.s32    q7, q7, #31
    vadd.i32    q0, q0, q7
    vand        q7, q1, q3
    vshr.s32    q7, q7, #31
    vadd.i32    q1, q1, q7
    shift_right
    .endm

    /* q7: both pixels' outputs; q0 and q1: the next sums, or behind the last ones what lies there. */
    .macro narrow
    vqmovnb.s32 q7, q0
    vqmovnt.s32 q7, q1
    vld20.32    {q0, q1}, [r1]
    vqadd.s16   q7, q7, r10
    vld21.32    {q0, q1}, [r1]!
    vmax.s16    q7, q7, q4
    vmin.s16    q7, q7, q5
    .endm

    /* All channels of the block, requantised by \mode. */
    .macro put_out mode
    first_sums
    wls         lr, r4, 2f
1:
    \mode
    narrow
    vstrb.16    q7, [r3, q6]
    add         r3, r3, #4
    le          lr, 1b
2:
    cbz         r6, 3f
    \mode
    narrow
    vpst
    vstrbt.16   q7, [r3, q6]
3:
    .endm

    function    nn_mve_run_pairs
    push_r4_to_r11
    push_vectors
    sub         sp, sp, #PAIRS_FRAME
    .cfi_adjust_cfa_offset PAIRS_FRAME
    str         r0, [sp, #PAIRS_SELF]
    ldr         r11, [r0, #PAIRS_INPUTS]
10: /* a pair */
    ldrd        r1, r8, [r0, #PAIRS_FACTORS]    // and channels
    ldr         r3, [r0, #PAIRS_OUT]
    ldr         r5, [r0, #PAIRS_WEIGHTS]
    strd        r1, r3, [sp, #PAIRS_AT]
11: /* a block of channels: 16 tiles of three, or what is left, the last tile one short maybe */
    str         r8, [sp, #PAIRS_CHANNELS]
    mov         r12, #(PAIRS_BLOCK / 3)
    movs        r4, #0
    cmp         r8, #PAIRS_BLOCK
    bge         12f
    movs        r4, #3
    add         r12, r8, #1
    udiv        r12, r12, r4
    mls         r4, r12, r4, r8
    bic         r4, r4, r4, asr #31     // 0 where a tile is one short
12:
    str         r4, [sp, #PAIRS_REST]
    ldrd        r1, r3, [r0, #PAIRS_X0]
    ldr         r4, [r0, #PAIRS_DOTS]
    add         r9, sp, #PAIRS_SUMS
    blx         r4
    ldr         r0, [sp, #PAIRS_SELF]
    add         r1, sp, #PAIRS_SUMS
    ldrd        r2, r3, [sp, #PAIRS_AT]
    ldr         r8, [sp, #PAIRS_CHANNELS]
    ldr         r4, [r0, #PAIRS_FACTORS]        // the nn_mve_head ends there
    ldrd        r10, r7, [r4, #PAIRS_ZERO_POINT] // and the low clamp
    ldrd        r4, r9, [r4, #PAIRS_HIGH]       // and the mode
    vdup.16     q4, r7
    vdup.16     q5, r4
    vldrw.u32   q6, [r0, #PAIRS_OFFSETS]
    movs        r4, #(PAIRS_BLOCK / 4)
    movs        r6, #0
    subs        r8, r8, #PAIRS_BLOCK
    bge         13f
    add         r6, r8, #PAIRS_BLOCK
    lsrs        r4, r6, #2
    and         r6, r6, #3
    lsl         r7, r6, #1
    vctp.16     r7
13:
    cmp         r9, #1
    beq         15f
    bgt         16f
    put_out     plain
14:
    strd        r2, r3, [sp, #PAIRS_AT]
    cmp         r8, #0
    bgt         11b
    /* the next pair */
    ldrd        r1, r3, [r0, #PAIRS_X0]
    ldrd        r4, r5, [r0, #PAIRS_X_STEP]     // and out
    ldrd        r6, r7, [r0, #PAIRS_OUT_STEP]   // and pairs left
    add         r1, r1, r4
    add         r3, r3, r4
    add         r5, r5, r6
    strd        r1, r3, [r0, #PAIRS_X0]
    str         r5, [r0, #PAIRS_OUT]
    subs        r7, r7, #1
    str         r7, [r0, #PAIRS_LEFT]
    bne         10b
    .cfi_remember_state
    add         sp, sp, #PAIRS_FRAME
    .cfi_adjust_cfa_offset -PAIRS_FRAME
    pop_vectors
    pop         {r4-r11, pc}
    .cfi_restore_state
15:
    movs        r7, #1
    put_out     odd
    b           14b
16:
    put_out     general
    b           14b
    end         nn_mve_run_pairs
