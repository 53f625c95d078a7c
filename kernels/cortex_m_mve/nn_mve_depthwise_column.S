/* One output column of some channels, a multiple of four: where columns are few it is the channels
 * that fill vectors.
 *
 * A load of four words moves on to its place first: from a channel's last words to the next
 * channel's first, which lie four bytes behind its own. Four vectors reach too far for that (a load
 * can move by 508 bytes at most), so every other channel's are read from the last to the first.
 *
 * Registers:
 *   r0 r2 r4 r6   sums of four channels
 *   r1            the weights, moved on
 *   r5, r7        the zero point; where outputs go, moved on
 *   lr            fours of channels left
 *   q0            places of four words, moved on
 *   q3            places of four channels' numbers, moved on
 *   q1, q4        weights and inputs; then biases and factors
 *   q2            shifts (0 or less: to the right)
 *   q5            sums, then outputs
 *   q6, q7        clamps
 *
 * Schedule of four channels: each one's loads are followed by their products, a sum after the other;
 * then their numbers are gathered and the four are requantised together, by channel: x + round(x *
 * (factor - 1)), shifted to the right, negative ones less 1 where there is a shift (nn_mve.h).
 */
#include "nn_mve_depthwise.h"
#include "nn_mve_function.h"

    .macro begin_column
    push_r4_to_r8
    push_vectors
    vldrw.u32   q0, [r0]
    vldrw.u32   q3, [r0, #COLUMN_NUMBERS]
    vldrw.u32   q6, [r0, #COLUMN_LOW]
    vldrw.u32   q7, [r0, #COLUMN_HIGH]
    ldrd        r1, lr, [r0, #COLUMN_RECORD]    // and fours
    ldrd        r5, r7, [r0, #COLUMN_ZERO_POINT] // and out
0:
    .endm

    /* A vector's products, with inputs \by bytes further and the weights at \at, after which r1
     * moves on by \step. */
    .macro inputs_and_weights by, at, step
    vldrw.u32   q4, [q0, #\by]!
    .if         \step == 0
    vldrb.u8    q1, [r1, #\at]
    .else
    vldrb.u8    q1, [r1], #\step
    .endif
    .endm

    .macro first sum, by, at, step
    inputs_and_weights \by, \at, \step
    vmladav.s8  \sum, q4, q1
    .endm

    .macro then sum, by, at, step
    inputs_and_weights \by, \at, \step
    vmladava.s8 \sum, q4, q1
    .endm

    /* A channel of so many vectors; its last step is over its numbers as well. */
    .macro of_1 sum
    first       \sum, 4, 0, 32
    .endm

    .macro of_2 sum
    first       \sum, -252, 0, 16
    then        \sum, 256, 0, 32
    .endm

    .macro of_3 sum
    first       \sum, -508, 0, 16
    then        \sum, 256, 0, 16
    then        \sum, 256, 0, 32
    .endm

    .macro of_4 sum
    first       \sum, 4, 0, 16
    then        \sum, 256, 0, 16
    then        \sum, 256, 0, 16
    then        \sum, 256, 0, 32
    .endm

    .macro of_4_backwards sum
    first       \sum, 4, 48, 0
    then        \sum, -256, 32, 0
    then        \sum, -256, 16, 0
    then        \sum, -256, 0, 80
    .endm

    /* Four channels' outputs; \records: bytes of their constants. */
    .macro four_channels channel, other, records
    \channel    r0
    \other      r2
    \channel    r4
    \other      r6
    vmov        q5[2], q5[0], r0, r4
    vmov        q5[3], q5[1], r2, r6
    vldrw.u32   q1, [q3, #\records]!            // biases
    vldrw.u32   q4, [q3, #4]                    // factors less 1
    vldrw.u32   q2, [q3, #8]                    // shifts
    vadd.i32    q5, q5, q1
    vqrdmulh.s32 q4, q5, q4
    vadd.i32    q5, q5, q4
    vand        q1, q5, q2
    vshr.s32    q1, q1, #31
    vadd.i32    q5, q5, q1
    vrshl.s32   q5, q5, q2
    vqmovnb.s32 q5, q5
    vqadd.s16   q5, q5, r5
    vmax.s16    q5, q5, q6
    vmin.s16    q5, q5, q7
    vstrb.32    q5, [r7], #4
    le          lr, 0b
    pop_vectors
    pop         {r4-r8, pc}
    .endm

    function    nn_mve_depthwise_column_1
    begin_column
    four_channels of_1, of_1, 128
    end         nn_mve_depthwise_column_1

    function    nn_mve_depthwise_column_2
    begin_column
    four_channels of_2, of_2, 192
    end         nn_mve_depthwise_column_2

    function    nn_mve_depthwise_column_3
    begin_column
    four_channels of_3, of_3, 256
    end         nn_mve_depthwise_column_3

    function    nn_mve_depthwise_column_4
    begin_column
    four_channels of_4, of_4_backwards, 320
    end         nn_mve_depthwise_column_4
