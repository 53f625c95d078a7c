/* Sums of products of pixels with a depthwise group's taps, which its outputs follow.
 *
 *   void nn_vpu_taps_xs3(const nn_vpu_group *, const nn_vpu_taps *, int32_t offset, int8_t *to,
 *                        int32_t pixels, int32_t more)
 *
 * `more`: groups behind this one, which are computed one after the other.
 *
 * Registers, beside those of nn_vpu_offsets.h:
 *   r0   while sums are made: taps behind this one    r1  whether there is another line
 *   r2   added to a line's address, if it is not of padding
 *   r6   16, the bytes of a tap's weights    r7   the next weights
 *   r8   the next inputs                     r9   from tap to tap
 *   r10  the line
 *
 * Schedule: a tap is VLDC, VLMACC and a branch, a line takes 5 issues more, a pixel 13 beside its
 * outputs.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

    .section .text.nn_vpu_taps_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_taps_xs3
    .type nn_vpu_taps_xs3, @function
    .align 16
nn_vpu_taps_xs3:
    dualentsp FRAME
    { stw r4, sp[1] ; nop }
    { stw r5, sp[2] ; ldc r5, 32 }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    { stw r0, sp[FRAME_GROUP] ; nop }
    { stw r1, sp[FRAME_INPUTS] ; nop }
    { stw r2, sp[FRAME_X] ; nop }
    { stw r3, sp[FRAME_TO] ; nop }
.Lgroup:
    { ldw r11, r0[VPU_PLACE] ; nop }
    { ldw r4, sp[FRAME_PIXELS] ; add r3, r3, r11 }
    { add r2, r2, r11 ; nop }
.Lpixel:
    { ldw r7, r0[VPU_WEIGHTS] ; shl r11, r5, 4 }    /* 0x200, elements of 8 bits */
    { vsetc r11 ; shr r6, r5, 1 }
    { ldw r11, r0[VPU_BIAS] ; add r10, r1, 4 * TAPS_LINES }
    { vldd r11[0] ; add r11, r11, r5 }
    { vldr r11[0] ; nop }
.Lline:
    { ldw r1, r10[LINE_FLAGS] ; nop }
    { ldw r8, r10[LINE_X] ; and r11, r1, r2 }
    { ldw r9, r10[LINE_STEP] ; add r8, r8, r11 }
    { ldw r0, r10[LINE_LAST] ; zext r1, 1 }
.Ltap:
    { vldc r7[0] ; add r7, r7, r6 }
    { vlmacc r8[0] ; add r8, r8, r9 }
    { bt r0, .Ltap ; sub r0, r0, 1 }
    { bt r1, .Lline ; add r10, r10, r6 }
    { ldw r0, sp[FRAME_GROUP] ; ldaw r6, sp[FRAME_LOW] }
    { ldw r8, r0[VPU_KIND] ; add r9, r0, r5 }
    bl nn_vpu_outputs_xs3
    { ldw r1, sp[FRAME_INPUTS] ; sub r4, r4, 1 }
    { ldw r11, r1[TAPS_X_STEP] ; nop }
    { ldw r9, r1[TAPS_TO_STEP] ; add r2, r2, r11 }
    { bt r4, .Lpixel ; add r3, r3, r9 }
    { ldw r4, sp[FRAME_MORE] ; shl r11, r5, 3 }
    { bf r4, .Ldone ; sub r11, r11, r5 }            /* the bytes of a group */
    { ldw r2, sp[FRAME_X] ; add r0, r0, r11 }
    { ldw r3, sp[FRAME_TO] ; sub r4, r4, 1 }
    { stw r4, sp[FRAME_MORE] ; nop }
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
    retsp FRAME
    .size nn_vpu_taps_xs3, . - nn_vpu_taps_xs3
#endif
