/* The sums of a dense layer: tiles of six outputs, then single outputs.
 *
 * A vector of inputs is loaded once for six vectors of weights. Registers:
 *   r0            the arguments at first
 *   r0 r2 r4 r6 r8 r10   the sums of a tile; r0 of a single output
 *   r1            the inputs, moved on in a tile and back behind it
 *   r3            the weights, moved on; returned
 *   r5            16 n: what r1 moves on by in a tile
 *   r7            where sums go, moved on
 *   r9, r11       inputs left behind the turns of 64, and these turns
 *   r12, lr       tiles or outputs to do; turns of the innermost loop
 *   q0            inputs
 *   q1, q2        weights, in turns, so that a load need not wait for the product before it
 *   stack         single outputs
 *
 * Schedule of a tile: its biases are loaded into the sums, inputs are taken 64 at a time, then 16 at
 * a time; tail predication makes lanes beyond the last input zeros, and reads nothing behind it.
 */
#include "nn_mve_dense.h"
#include "nn_mve_function.h"

    .macro weights_to sum, vector
    vldrb.u8    \vector, [r3], #16
    vmladava.s8 \sum, q0, \vector
    .endm

    /* Sixteen inputs of six outputs, and of one. */
    .macro six_dots
    vldrb.u8    q0, [r1], #16
    weights_to  r0, q1
    weights_to  r2, q2
    weights_to  r4, q1
    weights_to  r6, q2
    weights_to  r8, q1
    weights_to  r10, q2
    .endm

    .macro one_dot
    vldrb.u8    q0, [r1], #16
    weights_to  r0, q1
    .endm

    /* All inputs of a tile. */
    .macro inputs dots
    wls         lr, r11, 2f
1:
    \dots
    \dots
    \dots
    \dots
    le          lr, 1b
2:
    wlstp.8     lr, r9, 2f
1:
    \dots
    letp        lr, 1b
2:
    sub         r1, r1, r5
    .endm

    function    nn_mve_dense_dots
    push_r4_to_r11
    ldm         r0, {r1, r3, r5, r7, r9, r11}   // r9: inputs, r11: tiles
    ldr         r12, [r0, #DENSE_REST]
    push        {r12}
    .cfi_adjust_cfa_offset 4
    mov         r12, r11
    lsr         r11, r9, #6
    and         r9, r9, #63
    cmp         r12, #0
    beq         3f
0:
    ldm         r3!, {r0, r2, r4, r6, r8, r10}
    inputs      six_dots
    stm         r7!, {r0, r2, r4, r6, r8, r10}
    subs        r12, r12, #1
    bne         0b
3:
    pop         {r12}
    .cfi_adjust_cfa_offset -4
    cmp         r12, #0
    beq         5f
4:
    ldr         r0, [r3], #4
    inputs      one_dot
    str         r0, [r7], #4
    subs        r12, r12, #1
    bne         4b
5:
    mov         r0, r3
    pop         {r4-r11, pc}
    end         nn_mve_dense_dots
