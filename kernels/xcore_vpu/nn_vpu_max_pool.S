/* Maxima of a pixel's taps, 32 channels at a time: what compute_group of nn_max_pool_s8_vpu.c does.
 *
 *   void nn_vpu_max_pool_xs3(const pooling *, const nn_vpu_pool_area *)
 *
 * Registers:
 *   r0  the pooling, then taps behind this one                  r1  the area
 *   r2  where outputs go                r3  groups behind this one
 *   r4  the group's first tap           r5  from tap to tap     r6, r7  what is kept of odd and even bytes
 *   r8  lanes          r9  1            r10 the next tap        r11 the row; addresses
 *
 * Schedule: a tap has 13 operations of the unit, of which two have no partner, and a branch.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define MAX_FRAME 36
#define MAX_ODD 8 /* vectors */
#define MAX_EVEN 16
#define MAX_LANES 24
#define MAX_ROWS 32 /* that are left */
#define MAX_PLAN 33 /* the pooling */
#define MAX_MASK 34

    .section .text.nn_vpu_max_pool_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_max_pool_xs3
    .type nn_vpu_max_pool_xs3, @function
    .globl nn_vpu_max_pool_xs3.nstackwords
    .set nn_vpu_max_pool_xs3.nstackwords, MAX_FRAME
    .align 4
.Llast: /* lies over the group before it */
    { ldw r11, r1[AREA_BACK] ; mkmsk r10, 32 }
    { sub r4, r4, r11 ; sub r2, r2, r11 }
    { shl r10, r10, r11 ; nop }
    { stw r10, sp[MAX_MASK] ; nop }
    bu .Lgroup

    .align 16
nn_vpu_max_pool_xs3:
    dualentsp MAX_FRAME
    { stw r4, sp[1] ; mkmsk r11, 32 }
    { stw r5, sp[2] ; nop }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; ldc r9, 1 }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    { stw r11, sp[MAX_MASK] ; nop }
    { stw r0, sp[MAX_PLAN] ; nop }
    { ldw r4, r1[AREA_X] ; ldaw r6, sp[MAX_ODD] }
    { ldw r5, r1[AREA_STRIDE] ; ldaw r7, sp[MAX_EVEN] }
    { ldw r2, r1[AREA_OUT] ; ldaw r8, sp[MAX_LANES] }
    { ldw r3, r1[AREA_GROUPS] ; nop }
    { bf r3, .Llast ; nop }
.Lgroup:
    ldc r11, POOLING_START
    { add r11, r11, r0 ; nop }
    { vldr r11[0] ; nop }
    { vstr r6[0] ; nop }
    { vstr r7[0] ; nop }
    ldc r11, POOLING_BY_256
    { add r11, r11, r0 ; nop }
    { vldc r11[0] ; mov r11, r4 }
    { ldw r10, r1[AREA_ROWS] ; nop }
    { stw r10, sp[MAX_ROWS] ; nop }
.Lrow:
    { ldw r0, r1[AREA_COLUMNS] ; mov r10, r11 }
.Ltap:
    vlashr r10[0], r9
    { vladd r6[0] ; nop }
    { vpos ; nop }
    { vlsub r6[0] ; nop }
    { vstr r6[0] ; nop }
    { vclrdr ; nop }
    { vlmacc r10[0] ; add r10, r10, r5 }
    { vstr r8[0] ; nop }
    vlashr r8[0], r9
    { vladd r7[0] ; nop }
    { vpos ; nop }
    { vlsub r7[0] ; nop }
    { vstr r7[0] ; nop }
    { bt r0, .Ltap ; sub r0, r0, 1 }
    { ldw r10, r1[AREA_ROW_STEP] ; nop }
    { ldw r10, r1[AREA_RING_END] ; add r11, r11, r10 }
    { lsu r10, r11, r10 ; nop }
    { bt r10, .Linside ; nop }
    { ldw r10, r1[AREA_RING] ; nop }
    { sub r11, r11, r10 ; nop }
.Linside:
    { ldw r10, sp[MAX_ROWS] ; nop }
    { bf r10, .Lclose ; sub r10, r10, 1 }
    { stw r10, sp[MAX_ROWS] ; nop }
    bu .Lrow
.Lclose:
    { ldw r0, sp[MAX_PLAN] ; mov r11, r6 }
    bl .Lclamp
    { neg r9, r9 ; nop }
    vlashr r6[0], r9
    ldap r11, .Lodd_bytes
    { ldw r11, r11[0] ; nop }
    { ldw r10, sp[MAX_MASK] ; nop }
    { and r10, r10, r11 ; nop }
    vstrpv r2[0], r10
    { mov r11, r7 ; ldc r9, 7 }
    bl .Lclamp
    vlashr r7[0], r9
    ldap r11, .Lodd_bytes
    { ldw r11, r11[0] ; ldc r9, 1 }
    { ldw r10, sp[MAX_MASK] ; shr r11, r11, 1 }
    { and r10, r10, r11 ; nop }
    vstrpv r2[0], r10
    { bf r3, .Ldone ; sub r3, r3, 1 }
    { ldc r11, 32 ; nop }
    { add r4, r4, r11 ; add r2, r2, r11 }
    { bt r3, .Lgroup ; nop }
    bu .Llast
.Ldone:
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp MAX_FRAME

    .align 4
.Lclamp: /* what is kept at r11 becomes the clamped maximum */
    { vldr r11[0] ; nop }
    ldc r10, POOLING_ZERO
    { add r10, r10, r0 ; nop }
    { vlsub r10[0] ; nop }
    { ldw r10, r0[0] ; nop }                        /* whether outputs are bounded */
    { bf r10, .Lclamped ; add r10, r0, 4 }
    { vladd r10[0] ; nop }
    ldaw r10, r10[8]
    { vladd r10[0] ; nop }
    ldaw r10, r10[8]
    { vladd r10[0] ; nop }
.Lclamped:
    { vstr r11[0] ; nop }
    retsp 0

    .align 4
.Lodd_bytes:
    .word 0xAAAAAAAA
    .size nn_vpu_max_pool_xs3, . - nn_vpu_max_pool_xs3
#endif
