/* From a group's sums in the accumulators to its outputs of one pixel.
 *
 * nn_vpu_outputs_xs3 does what nn_vpu_finish of nn_vpu_requantise.h does: scale, bound and store. Of
 * a scalar group it computes lanes one by one, 31 issues each; C does for dense layers.
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
/* Of a scalar group, in the place of a vector: */
#define SCALAR_ZERO_POINT (FRAME_NEAR + 0)
#define SCALAR_LEAST (FRAME_NEAR + 1)
#define SCALAR_MOST (FRAME_NEAR + 2)
#define SCALAR_UP (FRAME_NEAR + 3) /* 2^30, its negative */
#define SCALAR_DOWN (FRAME_NEAR + 4)
#define SCALAR_PIXELS (FRAME_NEAR + 5)
#define SCALAR_HALVE (FRAME_NEAR + 6)

    .section .text.nn_vpu_outputs_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_outputs_xs3
    .type nn_vpu_outputs_xs3, @function
    .globl nn_vpu_outputs_xs3.nstackwords
    .set nn_vpu_outputs_xs3.nstackwords, 2 + OUTPUTS_IN_C
    .align 16
.Lothers:
    { shr r11, r8, 6 ; ldaw r10, sp[FRAME_NEAR] }
    { bf r11, .Lon_16 ; shl r11, r5, 3 }
    bu .Lscalar
.Lon_16:
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

.Lin_c: /* C gets the group, its sums (upper halves, lower ones), and where outputs go */
    { mov r2, r3 ; ldaw r1, sp[FRAME_UPPER] }
    dualentsp 2
    { ldw r11, r0[VPU_SCALAR] ; nop }
    { bla r11 ; nop }
    { ldw r0, sp[FRAME_GROUP + 2] ; nop }
    { ldw r2, sp[FRAME_X_NOW + 2] ; nop }
    { ldw r3, sp[FRAME_TO_NOW + 2] ; nop }
    retsp 2

.Lscalar: /* lane by lane, with LiteRT's arithmetic */
    { stw r2, sp[FRAME_X_NOW] ; ldaw r6, sp[FRAME_UPPER] }
    { vstd r6[0] ; add r7, r6, r5 }
    { vstr r7[0] ; ldc r11, VPU_DENSE }
    { stw r3, sp[FRAME_TO_NOW] ; ldc r8, 0 }
    { ldw r11, r0[r11] ; nop }
    { bt r11, .Lin_c ; ldc r11, VPU_COMMON }
    { stw r4, sp[SCALAR_PIXELS] ; shl r10, r5, 2 }
    { ldw r1, r0[r11] ; add r10, r10, r5 }
    { ldw r7, r0[VPU_RECORD] ; shr r11, r5, 1 }
    { ldw r9, r1[1] ; add r7, r7, r11 }             /* r7: the record's biases */
    { stw r9, sp[SCALAR_ZERO_POINT] ; add r10, r10, r7 }
    { ldw r9, r1[2] ; nop }                         /* r10: the record's shifts */
    { stw r9, sp[SCALAR_LEAST] ; ldc r11, 1 }
    { ldw r9, r1[3] ; shl r11, r11, 24 }
    { stw r9, sp[SCALAR_MOST] ; shl r11, r11, 6 }
    { stw r11, sp[SCALAR_UP] ; neg r11, r11 }
    { stw r11, sp[SCALAR_DOWN] ; ldc r11, VPU_ORDER }
    { ldw r11, r0[r11] ; ldc r4, 2 }
    { ldw r9, r0[VPU_MASK] ; eq r1, r11, 0 }
    { add r3, r3, r1 ; shr r9, r9, r1 }             /* odd places */
    { shr r11, r11, 1 ; nop }
    { sub r4, r4, r11 ; nop }                       /* r4: from place to place */
.Llane: /* number r8; r9: the mask from its place on */
    { bf r9, .Llanes_end ; mov r11, r9 }
    { zext r11, 1 ; nop }
    { bf r11, .Lnext_lane ; add r11, r8, 8 }
    { ld16s r1, r6[r8] ; add r11, r11, 8 }
    { ld16s r0, r7[r8] ; nop }
    { ld16s r2, r6[r11] ; add r1, r1, r0 }
    { ld16s r0, r7[r11] ; zext r2, 16 }
    { shl r1, r1, 16 ; zext r0, 16 }
    { ldw r0, r7[r11] ; add r2, r2, r0 }            /* the multiplier */
    { ld8u r11, r10[r8] ; add r1, r1, r2 }          /* r1: the sum with its bias */
    { sext r11, 8 ; ldc r2, 2 }
    { neg r11, r11 ; ldc r5, 1 }
    { sub r11, r11, r2 ; nop }                      /* places to the right, less two */
    { shr r2, r11, 8 ; nop }
    { bt r2, .Lto_the_left ; nop }
    xor r2, r1, r0
    ashr r2, r2, 32
    { bt r2, .Lnegative ; shl r5, r5, r11 }
    { ldw r5, sp[SCALAR_UP] ; mov r2, r5 }
.Lrounding:
    maccs r2, r5, r1, r0
    { add r11, r11, 1 ; nop }
    ashr r2, r2, r11
.Lscaled:
    { ldw r0, sp[SCALAR_ZERO_POINT] ; nop }
    { ldw r1, sp[SCALAR_LEAST] ; add r2, r2, r0 }
    { ldw r11, sp[SCALAR_MOST] ; lss r0, r2, r1 }
    { bt r0, .Lleast ; lss r5, r11, r2 }
    { bt r5, .Lmost ; ldc r0, 0 }
.Lstore_lane:
    st8 r2, r3[r0]
.Lnext_lane:
    { add r8, r8, 1 ; add r3, r3, r4 }
    { shr r9, r9, r4 ; nop }
    bu .Llane
.Lnegative:
    { ldw r5, sp[SCALAR_DOWN] ; add r2, r5, r2 }
    bu .Lrounding
.Lto_the_left: /* before it is multiplied; or halved behind that, halves away from zero */
    { add r11, r11, 2 ; ldc r5, 31 }
    { eq r2, r11, 1 ; neg r11, r11 }
    { stw r2, sp[SCALAR_HALVE] ; add r11, r11, r2 }
    { shl r1, r1, r11 ; ldc r2, 0 }
    { ldw r5, sp[SCALAR_UP] ; mov r11, r5 }
    maccs r2, r5, r1, r0
    { add r2, r2, r2 ; shr r5, r5, r11 }
    { ldw r0, sp[SCALAR_HALVE] ; or r2, r2, r5 }
    { bf r0, .Lscaled ; nop }
    { shr r5, r2, r11 ; add r2, r2, 1 }
    { sub r2, r2, r5 ; nop }
    ashr r2, r2, 1
    bu .Lscaled
.Lleast:
    { mov r2, r1 ; ldc r0, 0 }
    bu .Lstore_lane
.Lmost:
    { mov r2, r11 ; nop }
    bu .Lstore_lane
.Llanes_end:
    { ldw r4, sp[SCALAR_PIXELS] ; ldc r5, 32 }
    { ldw r0, sp[FRAME_GROUP] ; nop }
    { ldw r2, sp[FRAME_X_NOW] ; nop }
    { ldw r3, sp[FRAME_TO_NOW] ; nop }
    retsp 0

    .align 4
.Labove_least: /* y above this is an output of -127 at least */
    .fill 16, 2, -32641
    .fill 8, 4, 0x80808080
    .size nn_vpu_outputs_xs3, . - nn_vpu_outputs_xs3
#endif
