/* One output column of some channels, a multiple of four: where columns are few it is the channels
 * that fill vectors.
 *
 * A channel's vectors of words are 256 bytes apart, and the next channel's lie four bytes further:
 * from the middle of four vectors on, a load reaches them all (508 bytes at most). So nothing moves
 * but from four channels to the next, and no load waits for the one before it.
 *
 * Registers:
 *   r0 r2 r4 r6   sums of four channels
 *   r1            the weights, moved on
 *   r5, r7        the zero point; where outputs go, moved on
 *   lr            fours of channels left
 *   r8            16
 *   q0            places of four words, PLACE_AHEAD bytes behind the first ones; moved on
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
    ldrd        r2, r4, [r0, #COLUMN_LOW]       // and high
    vdup.16     q6, r2
    vdup.16     q7, r4
    ldrd        r1, lr, [r0, #COLUMN_RECORD]    // and fours
    ldrd        r5, r7, [r0, #COLUMN_ZERO_POINT] // and out
    mov         r8, #16
0:
    .endm

    /* The sum of channel \k, of so many vectors; the last step of r1 is over its numbers as well. */
    .macro vector product, sum, at, step
    vldrw.u32   q4, [q0, #(\at - PLACE_AHEAD)]
    vldrb.u8    q1, [r1], #\step
    \product   \sum, q4, q1
    .endm

    .macro of_1 sum, k
    vector      vmladav.s8, \sum, 4 * \k, 32
    .endm

    .macro of_2 sum, k
    vector      vmladav.s8, \sum, 4 * \k, 16
    vector      vmladava.s8, \sum, 4 * \k + 4 * WORD_PITCH, 32
    .endm

    .macro of_3 sum, k
    vector      vmladav.s8, \sum, 4 * \k, 16
    vector      vmladava.s8, \sum, 4 * \k + 4 * WORD_PITCH, 16
    vector      vmladava.s8, \sum, 4 * \k + 8 * WORD_PITCH, 32
    .endm

    .macro of_4 sum, k
    vector      vmladav.s8, \sum, 4 * \k, 16
    vector      vmladava.s8, \sum, 4 * \k + 4 * WORD_PITCH, 16
    vector      vmladava.s8, \sum, 4 * \k + 8 * WORD_PITCH, 16
    vector      vmladava.s8, \sum, 4 * \k + 12 * WORD_PITCH, 32
    .endm

    /* Four channels' outputs; \records: bytes of their constants. */
    .macro four_channels channel, records
    \channel    r0, 0
    \channel    r2, 1
    \channel    r4, 2
    \channel    r6, 3
    vadd.i32    q0, q0, r8
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
    four_channels of_1, 128
    end         nn_mve_depthwise_column_1

    function    nn_mve_depthwise_column_2
    begin_column
    four_channels of_2, 192
    end         nn_mve_depthwise_column_2

    function    nn_mve_depthwise_column_3
    begin_column
    four_channels of_3, 256
    end         nn_mve_depthwise_column_3

    function    nn_mve_depthwise_column_4
    begin_column
    four_channels of_4, 320
    end         nn_mve_depthwise_column_4
