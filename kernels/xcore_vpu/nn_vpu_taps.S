/* Sums of products of pixels with a depthwise group's taps, which its outputs follow.
 *
 *   void nn_vpu_taps_xs3(const nn_vpu_group *, const nn_vpu_taps *, int32_t offset, int8_t *to,
 *                        int32_t pixels, int32_t more)
 *
 * `more`: groups behind this one, which are computed one after the other.
 *
 * The taps become a list of lines, which all pixels and groups share: up to eight taps a `step`
 * from one another. A line is four words: the first address, the step, two for each tap that it has
 * less than eight, and flags: bit 0 says that another line follows, the others are set if it is not
 * of padding.
 *
 * Registers, beside those of nn_vpu_offsets.h; while lines are made:
 *   r1   the nn_vpu_taps    r4  taps     r5  a word      r6  padding    r7  from tap to tap
 *   r8   the next line      r9  the row  r10 rows that are left         r0, r2, r3 are in the frame
 * For each pixel:
 *   r0   bundles that a line has less than eight taps have
 *   r1   the line's flags, then whether there is another one
 *   r2   added to a line's address, if it is not of padding
 *   r6   16, the bytes of a tap's weights    r7   the next weights
 *   r8   the next inputs                     r9   from tap to tap
 *   r10  the line
 *
 * Schedule: a tap is VLDC and VLMACC; a branch enters a row of eight. A line takes 6 issues more, a
 * pixel 12 beside its outputs.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define TAPS_FRAME (FRAME + 4 * TAPS_MOST_LINES)
#define TAPS_PIXELS 38
#define TAPS_MORE 39
#define TAPS_LINES FRAME

    .section .text.nn_vpu_taps_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_taps_xs3
    .type nn_vpu_taps_xs3, @function
    .globl nn_vpu_taps_xs3.nstackwords
    .set nn_vpu_taps_xs3.nstackwords, TAPS_FRAME + nn_vpu_outputs_xs3.nstackwords
    /* Lines of r4 taps of padding, perhaps none. */
    .align 4
.Lmany:
    { stw r11, r8[1] ; ldc r5, 8 }
    { stw r11, r8[2] ; sub r4, r4, r5 }
    { stw r3, r8[3] ; add r8, r8, r5 }
    { add r8, r8, r5 ; nop }
.Lpadding:
    { bf r4, .Lpadded ; ldc r5, 8 }
    { stw r6, r8[0] ; lsu r11, r5, r4 }
    { bt r11, .Lmany ; ldc r11, 0 }
    { stw r11, r8[1] ; sub r5, r5, r4 }
    { add r5, r5, r5 ; ldc r11, 16 }
    { stw r5, r8[2] ; nop }
    { stw r3, r8[3] ; add r8, r8, r11 }
.Lpadded:
    retsp 0

    .align 16
nn_vpu_taps_xs3:
    dualentsp TAPS_FRAME
    { stw r4, sp[1] ; nop }
    { stw r5, sp[2] ; nop }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    { stw r0, sp[FRAME_GROUP] ; nop }
    { stw r1, sp[FRAME_INPUTS] ; ldaw r8, sp[TAPS_LINES] }
    { stw r2, sp[FRAME_X] ; ldc r11, TAPS_PADDING }
    { stw r3, sp[FRAME_TO] ; mkmsk r3, 1 }
    { ldw r6, r1[r11] ; add r11, r11, 1 }
    { ldw r7, r1[r11] ; nop }
    { ldw r9, r1[TAPS_X] ; nop }
    { ldw r10, r1[TAPS_ROWS] ; nop }
    { ldw r4, r1[TAPS_HEAD] ; nop }
    bl .Lpadding
    { bf r10, .Lbelow ; nop }
.Lrow:
    { ldw r4, r1[TAPS_BEFORE] ; nop }
    { bf r4, .Lwithin ; nop }
    bl .Lpadding
.Lwithin:
    { ldw r4, r1[TAPS_COUNT] ; ldc r5, 8 }
    { stw r9, r8[0] ; sub r5, r5, r4 }
    { stw r7, r8[1] ; add r5, r5, r5 }
    { stw r5, r8[2] ; ldc r5, 0 }
    { not r5, r5 ; ldc r11, 16 }
    { stw r5, r8[3] ; add r8, r8, r11 }
    { ldw r4, r1[TAPS_AFTER] ; sub r10, r10, 1 }
    { bf r4, .Lnext ; nop }
    bl .Lpadding
.Lnext:
    { ldw r5, r1[TAPS_ROW_STEP] ; nop }
    { ldw r5, r1[TAPS_RING_END] ; add r9, r9, r5 }
    { ldw r11, r1[TAPS_RING] ; lsu r5, r9, r5 }
    { bt r5, .Linside ; nop }
    { sub r9, r9, r11 ; nop }
.Linside:
    { bt r10, .Lrow ; nop }
.Lbelow:
    { ldw r4, r1[TAPS_TAIL] ; nop }
    bl .Lpadding
    { sub r8, r8, 4 ; ldc r5, 32 }
    { ldw r11, r8[0] ; nop }
    { sub r11, r11, 1 ; nop }                       /* the last line */
    { stw r11, r8[0] ; nop }
    ldw r4, sp[TAPS_FRAME + 1]
    { stw r4, sp[TAPS_PIXELS] ; nop }
    ldw r4, sp[TAPS_FRAME + 2]
    { stw r4, sp[TAPS_MORE] ; nop }
    { ldw r3, sp[FRAME_TO] ; nop }
.Lgroup:
    { ldw r11, r0[VPU_PLACE] ; nop }
    { ldw r4, sp[TAPS_PIXELS] ; add r3, r3, r11 }
    { add r2, r2, r11 ; nop }
.Lpixel:
    { ldw r7, r0[VPU_WEIGHTS] ; shl r11, r5, 4 }    /* 0x200, elements of 8 bits */
    { vsetc r11 ; shr r6, r5, 1 }
    { ldw r11, r0[VPU_BIAS] ; ldaw r10, sp[TAPS_LINES] }
    { vldd r11[0] ; add r11, r11, r5 }
    { vldr r11[0] ; nop }
.Lline:
    { ldw r1, r10[LINE_FLAGS] ; nop }
    { ldw r8, r10[LINE_X] ; and r11, r1, r2 }
    { ldw r9, r10[LINE_STEP] ; add r8, r8, r11 }
    { ldw r0, r10[LINE_SKIP] ; zext r1, 1 }
    { bru r0 ; add r10, r10, r6 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { bt r1, .Lline ; nop }
    { ldw r0, sp[FRAME_GROUP] ; ldaw r6, sp[FRAME_LOW] }
    { ldw r8, r0[VPU_KIND] ; add r9, r0, r5 }
    bl nn_vpu_outputs_xs3
    { ldw r1, sp[FRAME_INPUTS] ; sub r4, r4, 1 }
    { ldw r11, r1[TAPS_X_STEP] ; nop }
    { ldw r9, r1[TAPS_TO_STEP] ; add r2, r2, r11 }
    { bt r4, .Lpixel ; add r3, r3, r9 }
    { ldw r4, sp[TAPS_MORE] ; shl r11, r5, 3 }
    { bf r4, .Ldone ; sub r11, r11, r5 }            /* the bytes of a group */
    { ldw r2, sp[FRAME_X] ; add r0, r0, r11 }
    { ldw r3, sp[FRAME_TO] ; sub r4, r4, 1 }
    { stw r4, sp[TAPS_MORE] ; nop }
    { stw r0, sp[FRAME_GROUP] ; nop }
    bu .Lgroup
.Ldone:
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp TAPS_FRAME
    .size nn_vpu_taps_xs3, . - nn_vpu_taps_xs3
#endif
