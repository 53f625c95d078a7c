/* How tiles of depthwise outputs end, for .S files: sums are requantised, clamped and stored.
 *
 * Registers that all tiles share:
 *   r0 r2 r4 r6   sums, or words on their way
 *   r1            the constants: weights, then numbers; moved on
 *   r3            nn_mve_tile
 *   r5            the zero point; in the upper half how far a channel's outputs lie from the next's
 *   r7            where outputs go, moved on
 *   r8, r9, r10   the channel's numbers: bias, factor less 1, shift (0 or less: to the right)
 *   r12           1 where the shift is below 0, else 0
 *   lr            channels left
 *   q4, q7        high and low clamps, at the end
 *   q5            outputs
 *   P0            the lanes of the last store
 */
#ifndef NN_MVE_DEPTHWISE_OUT_H
#define NN_MVE_DEPTHWISE_OUT_H

#include "nn_mve_depthwise.h"

/* clang-format off */
    .macro end_tile
    pop_vectors
    pop         {r4-r11, pc}
    .endm

    /* The channel's numbers, which r1 points to. */
    .macro numbers
    ldm         r1!, {r8-r10, r12}
    lsr         r12, r10, #31
    .endm

    /* Requantises \sums: x + round(x * (factor - 1)), then to the right, negative ones less 1 where
     * there is a shift (nn_mve.h). */
    .macro add_bias sums
    vadd.i32    \sums, \sums, r8
    .endm

    .macro multiply sums
    vqrdmlah.s32 \sums, \sums, r9
    .endm

    .macro lower sums
    vqdmlah.s32 \sums, \sums, r12
    .endm

    .macro shift_right sums
    vrshl.s32   \sums, r10
    .endm

    /* The tile's limits, loaded while the core computes. */
    .macro load_low
    vldrw.u32   q7, [r3, #TILE_LOW]
    .endm

    .macro load_high
    vldrw.u32   q4, [r3, #TILE_HIGH]
    .endm

    .macro clamp
    vqadd.s16   q5, q5, r5
    vmax.s16    q5, q5, q7
    vmin.s16    q5, q5, q4
    .endm

    /* Four sums, which are in r0, r2, r4 and r6, as outputs, stored. */
    .macro put_out_four
    vmov        q5[2], q5[0], r0, r4
    vmov        q5[3], q5[1], r2, r6
    add_bias    q5
    load_high
    multiply    q5
    load_low
    lower       q5
    shift_right q5
    vqmovnb.s32 q5, q5
    vqadd.s16   q5, q5, r5
    vmax.s16    q5, q5, q7
    vldrw.u32   q7, [r3, #TILE_FOURS]
    vmin.s16    q5, q5, q4
    vpst
    vstrbt.16   q5, [r7, q7]
    .endm
/* clang-format on */

#endif
