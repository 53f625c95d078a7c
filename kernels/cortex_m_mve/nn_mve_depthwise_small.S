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
 *   q0            places of four words, moved on by each load
 *   q1            offsets of eight outputs
 *   q2, q3        weights, and the same moved on by a word
 *   q4            inputs; then what is loaded at the end
 *   q5, q6        sums
 *   q7            low clamp
 *
 * Schedule of a channel: weights and numbers are loaded, then each load of inputs is followed by its
 * one or two sums. Four sums go to vector lanes together; the vectors of eight are requantised in
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
    vldrw.u32   q7, [r3, #TILE_LOW]
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

    .macro words
    vldrw.u32   q4, [q0, #(2 * WORD_PITCH)]!
    .endm

    /* Two outputs, with stride 1 and with stride 2. */
    .macro two_by1 a, b
    words
    vmladav.s8  \a, q4, q2
    vmladav.s8  \b, q4, q3
    .endm

    .macro two_by2 a, b
    words
    vmladav.s8  \a, q4, q2
    words
    vmladav.s8  \b, q4, q2
    .endm

    /* Eight outputs in q5, stored by \store. */
    .macro eight two, store
    \two        r0, r2
    \two        r4, r6
    vmov        q5[2], q5[0], r0, r4
    vmov        q6[2], q6[0], r2, r6
    \two        r0, r2
    \two        r4, r6
    vmov        q5[3], q5[1], r0, r4
    vmov        q6[3], q6[1], r2, r6
    add_bias    q5
    add_bias    q6
    multiply    q5
    multiply    q6
    lower       q5
    lower       q6
    shift_right q5
    shift_right q6
    vqmovnb.s32 q5, q5
    vqmovnt.s32 q5, q6
    clamp       q7
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
    .macro last_four two
    \two        r0, r2
    \two        r4, r6
    put_out_four
    clamp       q7
    store_four
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
    last_four   two_by1
    next_after_one
    end         nn_mve_depthwise_4_by1

    function    nn_mve_depthwise_8_by1
    begin_small TILE_NEXT_PLACE
    eight       two_by1, some
    next_after_one
    end         nn_mve_depthwise_8_by1

    function    nn_mve_depthwise_12_by1
    begin_small TILE_DOWN
    eight       two_by1, all
    add         r7, r7, r11
    last_four   two_by1
    next_after_two
    end         nn_mve_depthwise_12_by1

    function    nn_mve_depthwise_16_by1
    begin_small TILE_DOWN
    eight       two_by1, all
    add         r7, r7, r11
    eight       two_by1, some
    next_after_two
    end         nn_mve_depthwise_16_by1

    function    nn_mve_depthwise_4_by2
    begin_small TILE_NEXT_PLACE
    last_four   two_by2
    next_after_one
    end         nn_mve_depthwise_4_by2

    function    nn_mve_depthwise_8_by2
    begin_small TILE_NEXT_PLACE
    eight       two_by2, some
    next_after_one
    end         nn_mve_depthwise_8_by2
