/* Averages of a pixel's taps and means, 16 channels at a time: what nn_vpu_average of nn_vpu_average.h
 * and compute_group of nn_mean_s8_vpu.c do.
 *
 *   void nn_vpu_average_xs3(const nn_vpu_averages *, const nn_vpu_pool_area *)
 *   void nn_vpu_mean_xs3(const factors *, const nn_vpu_pool_area *)
 *
 * Registers:
 *   r0  constants      r1  the area    r2  where outputs go    r3  groups behind this one
 *   r4  the group's first tap          r5  32                  r6  from tap to tap
 *   r7  taps behind this one           r8  the row             r9  rows behind this one
 *   r10 the next tap; r9, r10 then constants
 *
 * Schedule: a tap is one operation of the unit and a branch. A group has about 43 issues more.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define AVERAGE_FRAME 36
#define AVERAGE_SUMS 8 /* vectors */
#define AVERAGE_LOWEST 16
#define AVERAGE_SIDES 24
#define AVERAGE_MASK 32
#define AVERAGE_ONES 33 /* addresses of constants */
#define AVERAGE_BIAS 34
#define AVERAGE_TIMES 35 /* how often the factor is multiplied, but for the last time */

    .section .text.nn_vpu_average_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_average_xs3
    .type nn_vpu_average_xs3, @function
    .globl nn_vpu_average_xs3.nstackwords
    .set nn_vpu_average_xs3.nstackwords, AVERAGE_FRAME
    .globl nn_vpu_mean_xs3
    .type nn_vpu_mean_xs3, @function
    .globl nn_vpu_mean_xs3.nstackwords
    .set nn_vpu_mean_xs3.nstackwords, AVERAGE_FRAME
    .align 4
.Lopen: /* what both functions begin with, when registers are saved; r11: a mask of 16 bytes */
    { stw r11, sp[AVERAGE_MASK] ; nop }
    { ldw r4, r1[AREA_X] ; nop }
    { ldw r6, r1[AREA_STRIDE] ; nop }
    { ldw r2, r1[AREA_OUT] ; nop }
    { ldw r3, r1[AREA_GROUPS] ; nop }
    { bt r3, .Lopened ; nop }
.Llast: /* lies over the group before it */
    { ldw r11, r1[AREA_BACK] ; mkmsk r10, 16 }
    { sub r4, r4, r11 ; sub r2, r2, r11 }
    { shl r10, r10, r11 ; nop }
    { zext r10, 16 ; nop }
    { stw r10, sp[AVERAGE_MASK] ; nop }
.Lopened:
    retsp 0

    .align 4
.Lsum: /* the taps are added to the accumulators */
    { ldw r11, sp[AVERAGE_ONES] ; mov r8, r4 }
    { vldc r11[0] ; nop }
    { ldw r9, r1[AREA_ROWS] ; nop }
.Lrow:
    { ldw r7, r1[AREA_COLUMNS] ; mov r10, r8 }
.Ltap:
    { vlmacc r10[0] ; add r10, r10, r6 }
    { bt r7, .Ltap ; sub r7, r7, 1 }
    { ldw r11, r1[AREA_ROW_STEP] ; nop }
    { ldw r10, r1[AREA_RING_END] ; add r8, r8, r11 }
    { ldw r11, r1[AREA_RING] ; lsu r10, r8, r10 }
    { bt r10, .Linside ; nop }
    { sub r8, r8, r11 ; nop }
.Linside:
    { bt r9, .Lrow ; sub r9, r9, 1 }
    { ldaw r10, sp[AVERAGE_SUMS] ; shl r11, r5, 3 } /* 0x100, elements of 16 bits */
    { vstr r10[0] ; nop }
    { vsetc r11 ; nop }
    retsp 0

    .align 4
.Lmultiply: /* r9: biases and the shift, then factors; r10: the sums. r9 comes behind `rest` */
    { ldw r9, sp[AVERAGE_BIAS] ; nop }
    { vldd r9[0] ; add r11, r9, r5 }
    { vldr r11[0] ; add r9, r11, r5 }
    { vldc r10[0] ; add r9, r9, r5 }
    { ldw r8, sp[AVERAGE_TIMES] ; nop }
.Lagain:
    { bf r8, .Lrest ; sub r8, r8, 1 }
    { vlmacc r9[0] ; nop }
    bu .Lagain
.Lrest:
    { add r9, r9, r5 ; nop }
    { vlmacc r9[0] ; add r9, r9, r5 }
    retsp 0

    .align 4
.Lput: /* lanes in 256ths become bytes */
    { ldaw r11, sp[AVERAGE_SUMS] ; nop }
    { vstr r11[0] ; nop }
    { vladd r0[0] ; nop }
    { vdepth1 ; ldaw r10, sp[AVERAGE_LOWEST] }
    { vstr r10[0] ; nop }
    { vldr r11[0] ; nop }
    { vdepth8 ; nop }
    { ldw r9, sp[AVERAGE_MASK] ; nop }
    vstrpv r2[0], r9
    { ldw r10, r10[0] ; nop }
    { and r9, r9, r10 ; add r11, r0, r5 }
    { bf r9, .Lstored ; nop }
    { vldr r11[0] ; nop }
    vstrpv r2[0], r9
.Lstored:
    { shl r11, r5, 4 ; shr r10, r5, 1 }             /* 0x200, elements of 8 bits */
    { add r4, r4, r10 ; add r2, r2, r10 }
    retsp 0

    .align 16
nn_vpu_average_xs3:
    dualentsp AVERAGE_FRAME
    { stw r4, sp[1] ; mkmsk r11, 16 }
    { stw r5, sp[2] ; ldc r5, 32 }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    bl .Lopen
    ldc r11, AVERAGES_ONES
    { add r11, r11, r0 ; nop }
    { stw r11, sp[AVERAGE_ONES] ; add r11, r11, r5 }
    { stw r11, sp[AVERAGE_BIAS] ; nop }
    ldc r11, AVERAGES_TIMES
    { add r11, r11, r0 ; nop }
    { ldw r11, r11[0] ; nop }
    { sub r11, r11, 1 ; nop }
    { stw r11, sp[AVERAGE_TIMES] ; nop }
.Lgroup:
    { ldw r11, r1[AREA_START] ; nop }
    { bt r11, .Lbiased ; nop }
    { vclrdr ; nop }
.Lbegun:
    bl .Lsum
    bl .Lmultiply
    { ldw r9, sp[AVERAGE_BIAS] ; shl r11, r5, 1 }
    { add r9, r9, r11 ; shl r11, r5, 1 }            /* the shift; r11: 64, to the clamp */
    { vlsat r9[0] ; add r11, r11, r0 }
    { ldw r9, r11[0] ; nop }
    { bf r9, .Lclamped ; add r9, r11, 4 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; nop }
.Lclamped:
    bl .Lput
    { vsetc r11 ; nop }
    { bf r3, .Ldone ; sub r3, r3, 1 }
    { bt r3, .Lgroup ; nop }
    bl .Llast
    bu .Lgroup
.Lbiased:
    { vldd r11[0] ; add r11, r11, r5 }
    { vldr r11[0] ; nop }
    bu .Lbegun
.Ldone:
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp AVERAGE_FRAME
    .size nn_vpu_average_xs3, . - nn_vpu_average_xs3

    .align 16
nn_vpu_mean_xs3:
    dualentsp AVERAGE_FRAME
    { stw r4, sp[1] ; mkmsk r11, 16 }
    { stw r5, sp[2] ; ldc r5, 32 }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    bl .Lopen
    { shl r11, r5, 1 ; nop }
    { add r11, r11, r0 ; nop }
    { stw r11, sp[AVERAGE_ONES] ; add r11, r11, r5 }
    { stw r11, sp[AVERAGE_BIAS] ; nop }
    ldc r11, FACTORS_TIMES
    { add r11, r11, r0 ; nop }
    { ldw r11, r11[0] ; nop }
    { stw r11, sp[AVERAGE_TIMES] ; nop }
.Lmean:
    { shl r11, r5, 4 ; nop }
    { vsetc r11 ; nop }
    { vclrdr ; nop }
    bl .Lsum
    { shl r9, r5, 3 ; nop }
    { add r11, r9, r0 ; ldaw r9, sp[AVERAGE_SIDES] }
    { vldr r11[0] ; ldc r8, 8 }                     /* the zero point */
    { vladd r10[0] ; nop }
    { vsign ; nop }
    { vstr r9[0] ; nop }
    vlashr r9[0], r8
    { vstr r9[0] ; nop }
    bl .Lmultiply
    { ldaw r11, sp[AVERAGE_SIDES] ; add r9, r9, r5 }
    { vldc r11[0] ; nop }
    { vlmacc r9[0] ; shl r11, r5, 1 }               /* the lift */
    { ldw r9, sp[AVERAGE_BIAS] ; nop }
    { add r9, r9, r11 ; nop }
    { vlsat r9[0] ; nop }
    bl .Lput
    { bf r3, .Lmeans_end ; sub r3, r3, 1 }
    { bt r3, .Lmean ; nop }
    bl .Llast
    bu .Lmean
.Lmeans_end:
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp AVERAGE_FRAME
    .size nn_vpu_mean_xs3, . - nn_vpu_mean_xs3
#endif
