/* Depthwise tiles of any kernel and stride: up to four output columns of one channel after the
 * other, of each as many loads of four words as the channel has vectors of weights (one to four).
 *
 * Registers, besides those of nn_mve_depthwise_out.h:
 *   r0 r2 r4 r6   sums of the four outputs
 *   r11           `down`: from an output's words to the next one's
 *   q0, q7        places of an output's first and second, and of its third and fourth four words
 *   q1 q2 q3 q6   vectors of weights
 *   q4, q5        inputs; q5 then sums
 *
 * Schedule of a channel: its weights and numbers are loaded; of four outputs, one by one, each load
 * of inputs is followed by its products; the four are requantised and stored together. Places move
 * from output to output only, and no load waits for one before it.
 */
#include "nn_mve_depthwise_out.h"
#include "nn_mve_function.h"

    .macro begin_any
    push_r4_to_r11
    push_vectors
    mov         r3, r0
    vldrw.u32   q0, [r3]
    ldr         r0, [r3, #TILE_STORED]
    vmsr        p0, r0
    ldrd        r1, lr, [r3, #TILE_RECORD]      // and channels
    ldrd        r5, r7, [r3, #TILE_ZERO_POINT]  // and out
    ldr         r11, [r3, #TILE_DOWN]
0:
    .endm

    .macro weights vector
    vldrb.u8    \vector, [r1], #16
    .endm

    .macro move place
    vadd.i32    \place, \place, r11
    .endm

    /* One output's sum, of so many vectors. */
    .macro sum_1 sum
    vldrw.u32   q4, [q0]
    move        q0
    vmladav.s8  \sum, q4, q1
    .endm

    .macro sum_2 sum
    vldrw.u32   q4, [q0]
    vmladav.s8  \sum, q4, q1
    vldrw.u32   q5, [q0, #(4 * WORD_PITCH)]
    move        q0
    vmladava.s8 \sum, q5, q2
    .endm

    .macro sum_3 sum
    sum_2       \sum
    vldrw.u32   q4, [q7]
    move        q7
    vmladava.s8 \sum, q4, q3
    .endm

    .macro sum_4 sum
    sum_2       \sum
    vldrw.u32   q4, [q7]
    vmladava.s8 \sum, q4, q3
    vldrw.u32   q5, [q7, #(4 * WORD_PITCH)]
    move        q7
    vmladava.s8 \sum, q5, q6
    .endm

    /* Where the third vector of the next output is. */
    .macro third_vector
    mov         r0, #(8 * WORD_PITCH)
    vadd.i32    q7, q0, r0
    .endm

    .macro four_outputs sum
    numbers
    \sum        r0
    \sum        r2
    \sum        r4
    \sum        r6
    put_out_four
    .endm

    .macro next_channel
    ldr         r0, [r3, #TILE_NEXT_PLACE]
    add         r7, r7, r5, lsr #16
    vadd.i32    q0, q0, r0
    le          lr, 0b
    end_tile
    .endm

    function    nn_mve_depthwise_any_1
    begin_any
    weights     q1
    four_outputs sum_1
    next_channel
    end         nn_mve_depthwise_any_1

    function    nn_mve_depthwise_any_2
    begin_any
    weights     q1
    weights     q2
    four_outputs sum_2
    next_channel
    end         nn_mve_depthwise_any_2

    function    nn_mve_depthwise_any_3
    begin_any
    weights     q1
    weights     q2
    weights     q3
    third_vector
    four_outputs sum_3
    next_channel
    end         nn_mve_depthwise_any_3

    function    nn_mve_depthwise_any_4
    begin_any
    weights     q1
    weights     q2
    weights     q3
    weights     q6
    third_vector
    four_outputs sum_4
    next_channel
    end         nn_mve_depthwise_any_4
