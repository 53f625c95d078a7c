/* Depthwise tiles of kernels of up to four rows and three columns, stride 1 or 2: all output columns
 * of a tile, up to 16 of them, of one channel after the other.
 *
 * By hand: compilers run out of registers and reload what is used most. A channel has one vector of
 * weights, four words: those of three columns, and a word of zeros. With stride 1, one load of four
 * words of inputs makes two outputs: the second one's weights are the same, moved on by a word (q3,
 * loaded from four bytes earlier, which are 0). With stride 2 each output has a load of its own.
 *
 * Sums become elements 0, 2, 1, 3 of two vectors in turn, so that four registers do: outputs 0, 4,
 * 2, 6 of eight are in q5 and 1, 5, 3, 7 in q6 (stride 1), and `offsets` puts them where they belong.
 *
 * Registers, besides those of nn_mve_depthwise_out.h:
 *   r11           from channel to channel: next_place, of one part; of two parts, `down`
 *   q0            places of four words, TILE_AHEAD bytes behind a channel's first ones: in the middle of
 *                 what loads reach, so that none moves it and waits for the one before it
 *   q1            offsets of eight outputs
 *   q2, q3        weights, and the same moved on by a word
 *   q4, q7        inputs, in turns
 *   q5, q6        sums
 *
 * Schedule of a channel: weights and numbers are loaded, then each load of inputs goes between the
 * products of the one before, as the core begins the one while it works on the other. Four sums go to vector lanes together; the vectors of eight are requantised in
 * turns, so that neither waits for its own multiplication.
 */
#include "nn_mve_depthwise_out.h"
#include "nn_mve_function.h"

    /* \next: what r11 holds. */
    .macro begin_small next
    push_r4_to_r11
    push_vectors
    mov         r3, r0
    vldrw.u32   q0, [r3]
    vldrw.u32   q1, [r3, #TILE_OFFSETS]
    ldr         r0, [r3, #TILE_STORED]
    vmsr        p0, r0
    ldrd        r1, lr, [r3, #TILE_RECORD]      // and channels
    ldrd        r5, r7, [r3, #TILE_ZERO_POINT]  // and out
    ldr         r11, [r3, #\next]
0:
    vldrb.u8    q3, [r1, #-4]
    vldrb.u8    q2, [r1], #16
    numbers
    .endm

    .macro words to, k
    vldrw.u32   \to, [q0, #(2 * WORD_PITCH * (\k) - TILE_AHEAD)]
    .endm

    /* Four outputs from pair \first on, with stride 1 and with stride 2; q4 has the first one's words,
     * and \next loads between the last products. */
    .macro first_by1 first
    words       q4, \first
    .endm

    .macro four_by1 first, next:vararg
    vmladav.s8  r0, q4, q2
    words       q7, \first + 1
    vmladav.s8  r2, q4, q3
    vmladav.s8  r4, q7, q2
    \next
    vmladav.s8  r6, q7, q3
    .endm

    .macro first_by2 first
    words       q4, 2 * (\first)
    .endm

    .macro four_by2 first, next:vararg
    words       q7, 2 * (\first) + 1
    vmladav.s8  r0, q4, q2
    words       q4, 2 * (\first) + 2
    vmladav.s8  r2, q7, q2
    words       q7, 2 * (\first) + 3
    vmladav.s8  r4, q4, q2
    \next
    vmladav.s8  r6, q7, q2
    .endm

    /* Eight outputs from pair \first on in q5, stored by \store. */
    .macro eight by, store, first=0
    first_\by   \first
    four_\by    \first, first_\by \first + 2
    vmov        q5[2], q5[0], r0, r4
    vmov        q6[2], q6[0], r2, r6
    four_\by    \first + 2
    vmov        q5[3], q5[1], r0, r4
    vmov        q6[3], q6[1], r2, r6
    add_bias    q5
    add_bias    q6
    load_high
    multiply    q5
    load_low
    multiply    q6
    lower       q5
    lower       q6
    shift_right q5
    shift_right q6
    vqmovnb.s32 q5, q5
    vqmovnt.s32 q5, q6
    clamp
    \store
    .endm

    .macro all
    vstrb.16    q5, [r7, q1]
    .endm

    .macro some
    vpst
    vstrbt.16   q5, [r7, q1]
    .endm

    /* The last outputs, where they are four at most. */
    .macro last_four by, first=0
    first_\by   \first
    four_\by    \first
    put_out_four
    .endm

    /* On to the next channel, after one part, and after two. */
    .macro next_after_one
    vadd.i32    q0, q0, r11
    add         r7, r7, r5, lsr #16
    le          lr, 0b
    end_tile
    .endm

    .macro next_after_two
    ldrd        r0, r2, [r3, #TILE_NEXT_PLACE]  // and next_out
    vadd.i32    q0, q0, r0
    add         r7, r7, r2
    le          lr, 0b
    end_tile
    .endm

    function    nn_mve_depthwise_4_by1
    begin_small TILE_NEXT_PLACE
    last_four   by1
    next_after_one
    end         nn_mve_depthwise_4_by1

    function    nn_mve_depthwise_8_by1
    begin_small TILE_NEXT_PLACE
    eight       by1, some
    next_after_one
    end         nn_mve_depthwise_8_by1

    function    nn_mve_depthwise_12_by1
    begin_small TILE_DOWN
    eight       by1, all
    add         r7, r7, r11
    last_four   by1, 4
    next_after_two
    end         nn_mve_depthwise_12_by1

    function    nn_mve_depthwise_16_by1
    begin_small TILE_DOWN
    eight       by1, all
    add         r7, r7, r11
    eight       by1, some, 4
    next_after_two
    end         nn_mve_depthwise_16_by1

    function    nn_mve_depthwise_4_by2
    begin_small TILE_NEXT_PLACE
    last_four   by2
    next_after_one
    end         nn_mve_depthwise_4_by2

    function    nn_mve_depthwise_8_by2
    begin_small TILE_NEXT_PLACE
    eight       by2, some
    next_after_one
    end         nn_mve_depthwise_8_by2
