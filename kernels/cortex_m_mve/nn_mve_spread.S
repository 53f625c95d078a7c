/* Spreads columns of four rows over scratch, so that 16 channels have a word each (see
 * nn_mve_depthwise.h).
 *
 * A column is 16 bytes of each row. VST4 interleaves the four registers: byte i of q0 to q3 become
 * the four bytes of channel i's word; it takes four instructions (VST40 to VST43), the last of
 * which moves on.
 *
 * Registers:
 *   r0            where words go, moved on
 *   r1, r2        the rows, the first column's offset in them
 *   r3, lr        columns; those left
 *   r4 to r7      addresses in the rows, moved on
 *   r8 to r11     steps of the rows from column to column
 *   r12           channels; then bytes of other rows' words between two columns
 *   q0 to q3      the rows' bytes; q0 and q1 addresses and steps before
 *   P0            lanes of rows that are not padding; then of the channels
 *
 * Of three rows, the fourth is whatever was in q3: its weights are zeros.
 */
#include "nn_mve_function.h"
#include "nn_mve_depthwise.h"

    /* Only of rows that are inside, the addresses go on by the offset: padding has 16 bytes. */
    .macro begin_spread
    push_r4_to_r11
    vldrw.u32   q0, [r1]
    vldrw.u32   q1, [r1, #ROWS_STEP]
    vpt.i32     ne, q1, zr
    vaddt.i32   q0, q0, r2
    ldrd        r8, r9, [r1, #ROWS_STEP]
    ldrd        r10, r11, [r1, #(ROWS_STEP + 8)]
    vmov        r4, r6, q0[2], q0[0]
    vmov        r5, r7, q0[3], q0[1]
    dls         lr, r3
    .endm

    /* P0: the channels' lanes. */
    .macro channels
    ldr         r12, [sp, #36]
    vctp.8      r12
    .endm

    .macro three_rows
    vldrb.u8    q0, [r4]
    vldrb.u8    q1, [r5]
    vldrb.u8    q2, [r6]
    .endm

    .macro some_of_three_rows
    vpsttt
    vldrbt.u8   q0, [r4]
    vldrbt.u8   q1, [r5]
    vldrbt.u8   q2, [r6]
    .endm

    .macro some_of_four_rows
    vpstttt
    vldrbt.u8   q0, [r4]
    vldrbt.u8   q1, [r5]
    vldrbt.u8   q2, [r6]
    vldrbt.u8   q3, [r7]
    add         r7, r7, r11
    .endm

    .macro interleave
    add         r4, r4, r8
    add         r5, r5, r9
    add         r6, r6, r10
    vst40.8     {q0, q1, q2, q3}, [r0]
    vst41.8     {q0, q1, q2, q3}, [r0]
    vst42.8     {q0, q1, q2, q3}, [r0]
    vst43.8     {q0, q1, q2, q3}, [r0]!
    .endm

    .macro end_spread
    le          lr, 1b
    pop         {r4-r11, pc}
    .endm

    function    nn_mve_spread_3_all
    begin_spread
1:
    three_rows
    interleave
    end_spread
    end         nn_mve_spread_3_all

    function    nn_mve_spread_3
    begin_spread
    channels
1:
    some_of_three_rows
    interleave
    end_spread
    end         nn_mve_spread_3

    function    nn_mve_spread_3_apart
    begin_spread
    channels
    ldr         r12, [r1, #ROWS_APART]
1:
    some_of_three_rows
    interleave
    add         r0, r0, r12
    end_spread
    end         nn_mve_spread_3_apart

    function    nn_mve_spread_4
    begin_spread
    channels
1:
    some_of_four_rows
    interleave
    end_spread
    end         nn_mve_spread_4

    function    nn_mve_spread_4_apart
    begin_spread
    channels
    ldr         r12, [r1, #ROWS_APART]
1:
    some_of_four_rows
    interleave
    add         r0, r0, r12
    end_spread
    end         nn_mve_spread_4_apart
