/* From a group's sums in the accumulators to its outputs of one pixel.
 *
 * nn_vpu_outputs_xs3 does what nn_vpu_finish of nn_vpu_requantise.h does: scale, bound and store; of
 * a scalar group it calls C with the sums.
 *
 * Registers: those of nn_vpu_offsets.h. r1 and r6 to r11 change. Of a group that is exact:
 *   r6   the sums' lower halves    r7   the factors' upper halves   r8  which kind of group
 *   r9   a vector of `own`         r10  `upper`                     r11 the offset's upper halves
 *
 * Schedule: addresses are made in the other half of the operations' bundles, so what is issued
 * beside them are two loads and a branch to scale, two loads, a branch and the return to store.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define OUTPUTS_IN_C 64 /* words of stack, for the C that a scalar group calls */

    .section .text.nn_vpu_outputs_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_outputs_xs3
    .type nn_vpu_outputs_xs3, @function
    .globl nn_vpu_outputs_xs3.nstackwords
    .set nn_vpu_outputs_xs3.nstackwords, 2 + OUTPUTS_IN_C
    .align 16
.Lothers:
    { shr r11, r8, 6 ; ldaw r10, sp[FRAME_NEAR] }
    { bt r11, .Lscalar ; shl r11, r5, 3 }
    { vsetc r11 ; sub r8, r8, 8 }                   /* r8: places to the left */
    { vlsat r7[0] ; add r7, r7, r5 }
    { bt r8, .Lup ; nop }
.Lmultiply:
    { vlmul r7[0] ; add r7, r7, r5 }
    { vladd r7[0] ; nop }
    bu .Lput
.Lup:
    { vstr r10[0] ; neg r8, r8 }
    vlashr r10[0], r8
    bu .Lmultiply

.Lscalar: /* C gets the group, its sums (upper halves, lower ones), and where outputs go */
    { stw r2, sp[FRAME_X_NOW] ; ldaw r1, sp[FRAME_UPPER] }
    { vstd r1[0] ; add r6, r1, r5 }
    { vstr r6[0] ; mov r2, r3 }
    { stw r3, sp[FRAME_TO_NOW] ; nop }
    dualentsp 2
    { ldw r11, r0[VPU_SCALAR] ; nop }
    { bla r11 ; nop }
    { ldw r0, sp[FRAME_GROUP + 2] ; nop }
    { ldw r2, sp[FRAME_X_NOW + 2] ; nop }
    { ldw r3, sp[FRAME_TO_NOW + 2] ; nop }
    retsp 2

    .align 16
nn_vpu_outputs_xs3:
    { ldw r7, r0[VPU_FACTORS] ; shr r11, r8, 3 }
    { bt r11, .Lothers ; add r9, r9, r5 }
    { vstr r6[0] ; shl r11, r5, 3 }                 /* 0x100, elements of 16 bits */
    { vsetc r11 ; add r1, r7, r5 }
    { vlsat r9[0] ; ldaw r10, sp[FRAME_UPPER] }
    { vstr r10[0] ; add r11, r1, r5 }
    { vlmul r1[0] ; add r1, r11, r5 }
    { vladd r1[0] ; shr r1, r8, 1 }                 /* the lower halves of the offset */
    { bt r8, .Lmore ; zext r8, 1 }
.Lplain:
    { vldc r10[0] ; nop }
.Lend:
    { vldd r11[0] ; add r9, r9, r5 }
    { vlmacc r7[0] ; ldaw r10, sp[FRAME_NEAR] }
    { vlsat r9[0] ; nop }

.Lput: /* y is in vR; r10: room for it */
    { ldw r8, r0[VPU_STORE] ; nop }
    { ldw r6, r0[VPU_MASK] ; nop }
.Lput_bounded:
    { bt r8, .Lnot_odd ; shr r9, r8, 2 }
    vstrpv r3[0], r6
    retsp 0
.Lnot_odd:
    { bt r9, .Lbound ; zext r8, 2 }
    { vstr r10[0] ; sub r8, r8, 1 }
    { bt r8, .Lalone ; ldc r9, 8 }
    vlashr r10[0], r9
    vstrpv r3[0], r6
    retsp 0

.Lalone: /* -128 everywhere, then what is above it */
    ldap r11, .Labove_least
    { vlsub r11[0] ; add r11, r11, r5 }
    { vdepth1 ; ldaw r9, sp[FRAME_LOW] }
    { vstr r9[0] ; nop }
    { vldr r11[0] ; nop }
    vstrpv r3[0], r6
    { ldw r9, r9[0] ; mov r11, r10 }
    { vldr r11[0] ; and r6, r6, r9 }
    { vdepth8 ; nop }
    vstrpv r3[0], r6
    retsp 0

.Lbound: /* by two steps each to the upper end, back, to the lower end, back */
    { ldw r9, r0[VPU_BOUNDS] ; nop }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; nop }
    bu .Lput_bounded

.Lmore: /* r1: 0 plain, 1 wide, 2 fine; r8: with signs */
    { bf r8, .Lunsigned ; ldaw r6, sp[FRAME_NEAR] }
    { vstr r6[0] ; ldc r8, 15 }
    { neg r8, r8 ; nop }
    vlashr r10[0], r8
    { shl r8, r5, 2 ; nop }
    { add r8, r9, r8 ; nop }
    { vlmul r8[0] ; nop }
    { vladd r6[0] ; nop }
.Lunsigned:
    { bf r1, .Lplain ; shr r1, r1, 1 }
    { bt r1, .Lfine ; add r8, r9, r5 }
    { ldaw r6, sp[FRAME_LOW] ; add r8, r8, r5 }     /* `low`, behind it `power` */
    { vldc r6[0] ; nop }
    { vlmacc r8[0] ; add r8, r8, r5 }
    { vldc r10[0] ; nop }
    { vlmacc r8[0] ; nop }
    bu .Lend
.Lfine:
    { vstr r6[0] ; ldaw r1, sp[FRAME_LOW] }
    { vldc r1[0] ; add r8, r8, r5 }
    { vclrdr ; add r1, r8, r5 }
    { vlmacc r1[0] ; nop }
    { vlmul r8[0] ; nop }
    { vladd r6[0] ; nop }
    bu .Lplain

    .align 4
.Labove_least: /* y above this is an output of -127 at least */
    .fill 16, 2, -32641
    .fill 8, 4, 0x80808080
    .size nn_vpu_outputs_xs3, . - nn_vpu_outputs_xs3
#endif
