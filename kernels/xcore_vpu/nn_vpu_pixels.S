/* Sums of products of pixels with the 16 rows of a group's weights, which its outputs follow.
 *
 *   void nn_vpu_pixels_xs3(const nn_vpu_group *, const nn_vpu_runs *, const int8_t *x, int8_t *to,
 *                          int32_t pixels, int32_t more)
 *
 * `more`: groups behind this one, which are computed one after the other.
 *
 * Registers, beside those of nn_vpu_offsets.h:
 *   r0   while sums are made: runs, or a rest, behind this one
 *   r6   bytes from a row of weights to that of the lane before it
 *   r7   the next row of weights
 *   r8   the next 32 inputs
 *   r9   pairs of blocks behind this one
 *   r10  from the first lane's row to the last lane's, 32 inputs further: 15 * r6 + 32
 *
 * Schedule: a block is VLDC and 16 VLMACCR for 512 products. Every one moves an address in the
 * other half of its bundle; two blocks share a branch, an odd number is entered at the second. That
 * is 17.5 issues. Each 16 bytes of code (four bundles) need an issue that touches no memory, or the
 * fetch stalls. A pixel takes 19 issues beside its blocks and outputs, 5 more with a rest, 10 more
 * for each further run.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

    .section .text.nn_vpu_pixels_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_pixels_xs3
    .type nn_vpu_pixels_xs3, @function
    .globl nn_vpu_pixels_xs3.nstackwords
    .set nn_vpu_pixels_xs3.nstackwords, FRAME + nn_vpu_outputs_xs3.nstackwords
    .align 16
.Ltake_rest: /* before there are biases in vR */
    { ldw r11, r1[RUNS_REST_FROM] ; nop }
    { ldw r10, r1[RUNS_REST_TO] ; add r11, r11, r2 }
    { vldr r11[0] ; shl r11, r5, 4 }
    vstrpv r10[0], r9
    { ldw r10, r1[RUNS_MORE] ; nop }
    { bt r10, .Ltaken ; nop }
    { ldw r8, r1[RUNS_REST] ; nop }                 /* there is nothing else */
    { ldw r10, r1[RUNS_AHEAD] ; nop }
    { bu .Ltaken ; sub r7, r7, r10 }

nn_vpu_pixels_xs3:
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
.Lpixel:
    { ldw r9, r1[RUNS_REST_MASK] ; mov r8, r2 }
    { ldw r7, r0[VPU_WEIGHTS] ; shl r11, r5, 4 }    /* 0x200, elements of 8 bits */
    { bt r9, .Ltake_rest ; nop }
.Ltaken:
    { vsetc r11 ; nop }
    { ldw r6, r0[VPU_STEP] ; nop }
    { ldw r11, r0[VPU_BIAS] ; shl r10, r6, 4 }
    { vldd r11[0] ; add r11, r11, r5 }
    { vldr r11[0] ; sub r10, r10, r6 }
    { ldw r11, r1[RUNS_ODD] ; add r10, r10, r5 }
    { ldw r9, r1[RUNS_PAIRS] ; nop }
    { ldw r0, r1[RUNS_MORE] ; nop }
.Lrun:
    { bt r11, .Lblock ; nop }
.Lpair:
    { vldc r8[0] ; add r8, r8, r5 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; add r7, r7, r10 }
.Lblock:
    { vldc r8[0] ; add r8, r8, r5 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; sub r7, r7, r6 }
    { vlmaccr r7[0] ; add r7, r7, r10 }
    { bt r9, .Lpair ; sub r9, r9, 1 }
    { bt r0, .Lnext ; sub r0, r0, 1 }
    { ldw r0, sp[FRAME_GROUP] ; ldaw r6, sp[FRAME_LOW] }
    { ldw r8, r0[VPU_KIND] ; add r9, r0, r5 }
    bl nn_vpu_outputs_xs3
    { ldw r1, sp[FRAME_INPUTS] ; sub r4, r4, 1 }
    { ldw r11, r1[RUNS_X_STEP] ; nop }
    { ldw r9, r1[RUNS_TO_STEP] ; add r2, r2, r11 }
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

.Lnext: /* the next run, or the rest of the only one */
    { ldw r11, r1[RUNS_REST_MASK] ; nop }
    { bt r11, .Lrest ; nop }
    { ldw r11, r1[RUNS_AHEAD] ; nop }
    { ldw r9, r1[RUNS_RING_END] ; add r8, r8, r11 }
    { ldw r11, r1[RUNS_RING] ; lsu r9, r8, r9 }
    { bt r9, .Linside ; nop }
    { sub r8, r8, r11 ; nop }
.Linside:
    { ldw r11, r1[RUNS_ODD] ; nop }
    { ldw r9, r1[RUNS_PAIRS] ; nop }
    bu .Lrun
.Lrest:
    { ldw r8, r1[RUNS_REST] ; ldc r9, 0 }
    { ldw r11, r1[RUNS_AHEAD] ; nop }
    { bu .Lblock ; sub r7, r7, r11 }
    .size nn_vpu_pixels_xs3, . - nn_vpu_pixels_xs3
#endif
