/* Depthwise tiles of any kernel and stride: up to four output columns of one channel after the
 * other, of each as many loads of four words as the channel has vectors of weights (one to four).
 *
 * Registers, besides those of nn_mve_depthwise_out.h:
 *   r0 r2 r4      sums of the first three outputs; r6 adds up each, and ends as that of the fourth
 *   r11           `down`: from an output's last words to the next one's first
 *   q0            places of four words, moved on
 *   q1 q2 q3 q6   vectors of weights
 *   q4            inputs; then what is loaded at the end
 *   q5            sums
 *   q7            low clamp
 *
 * Schedule of a channel: its weights and numbers are loaded; of four outputs, one by one, each load
 * of inputs is followed by its products; the four are requantised and stored together.
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

    .macro first_words
    vldrw.u32   q4, [q0]
    vmladav.s8  r6, q4, q1
    .endm

    .macro then_words weights
    vldrw.u32   q4, [q0, #(4 * WORD_PITCH)]!
    vmladava.s8 r6, q4, \weights
    .endm

    /* r6: one output's sum, of so many vectors. */
    .macro sum_1
    first_words
    .endm

    .macro sum_2
    first_words
    then_words  q2
    .endm

    .macro sum_3
    sum_2
    then_words  q3
    .endm

    .macro sum_4
    sum_3
    then_words  q6
    .endm

    .macro four_outputs sum
    numbers
    \sum
    mov         r0, r6
    vadd.i32    q0, q0, r11
    \sum
    mov         r2, r6
    vadd.i32    q0, q0, r11
    \sum
    mov         r4, r6
    vadd.i32    q0, q0, r11
    \sum
    vadd.i32    q0, q0, r11
    put_out_four
    vldrw.u32   q7, [r3, #TILE_LOW]
    clamp       q7
    store_four
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
    four_outputs sum_3
    next_channel
    end         nn_mve_depthwise_any_3

    function    nn_mve_depthwise_any_4
    begin_any
    weights     q1
    weights     q2
    weights     q3
    weights     q6
    four_outputs sum_4
    next_channel
    end         nn_mve_depthwise_any_4
