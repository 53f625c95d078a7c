/* Makes groups ready, each from its record: what follows from it, once for all pixels of a call.
 *
 *   void nn_vpu_ready_xs3(nn_vpu_group *, const nn_vpu_record *, int32_t count, int32_t ahead)
 *
 * It does what nn_vpu_ready of nn_vpu_requantise.h does.
 *
 * Registers:
 *   r0   `own` of the group; its vectors: shift, down, low, power, sign
 *   r1   the record    r2  its mode, then the kind    r4  32, the bytes of a vector
 *   r3   constants     r5  the bytes to split         r6, r7  where their upper and lower halves go
 *   r8   the record's factors    r9  the group        r10 groups that are left
 *
 * Schedule: an issue for each operation of the unit, addresses in its bundle. A group takes 19
 * issues more, 8 with signs.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define READY_FRAME 32
#define READY_BOTH 8 /* vectors */
#define READY_LEFT 16
#define READY_TWICE 24
#define READY_AHEAD 28

    .section .text.nn_vpu_ready_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_ready_xs3
    .type nn_vpu_ready_xs3, @function
    .globl nn_vpu_ready_xs3.nstackwords
    .set nn_vpu_ready_xs3.nstackwords, READY_FRAME
    .align 4
.Lmove: /* to the next batch's channels */
    { ldw r11, r9[VPU_WEIGHTS] ; nop }
    { ldw r5, r9[VPU_PLACE] ; add r11, r11, r3 }
    { stw r11, r9[VPU_WEIGHTS] ; add r5, r5, r6 }
    { stw r5, r9[VPU_PLACE] ; nop }
    bu .Lmoved

.Lspecial: /* scalar, or on 16 bits */
    { zext r11, 1 ; ldc r5, 1 }
    { bt r11, .Lscalar ; nop }
    { ld8u r2, r1[r5] ; nop }                       /* how far sums move up */
    { stw r6, r9[VPU_BIAS] ; add r2, r2, 8 }
    { stw r2, r9[VPU_KIND] ; nop }
    bu .Ldone
.Lscalar:
    { shl r2, r4, 1 ; sub r3, r3, r4 }
    { stw r3, r9[VPU_BIAS] ; nop }                  /* zeros */
    { stw r2, r9[VPU_KIND] ; nop }
    bu .Ldone

    .align 16
nn_vpu_ready_xs3:
    dualentsp READY_FRAME
    { stw r4, sp[1] ; ldc r4, 32 }
    { stw r5, sp[2] ; nop }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; mov r9, r0 }
    { stw r10, sp[7] ; mov r10, r2 }
    { stw r3, sp[READY_AHEAD] ; nop }
.Lgroup:
    { ldw r3, sp[READY_AHEAD] ; ldc r8, RECORD_AS / 4 }
    { bt r3, .Lmove ; shl r6, r4, 1 }
.Lmoved:
    ldap r11, .Lconstants
    { mov r3, r11 ; ldc r11, 0 }
    { ld8u r2, r1[r11] ; shl r8, r8, 2 }
    { stw r1, r9[VPU_RECORD] ; shr r11, r2, 2 }
    { add r8, r8, r1 ; zext r11, 2 }
    { stw r8, r9[VPU_FACTORS] ; shr r6, r4, 1 }
    { bt r11, .Lspecial ; add r6, r6, r1 }
    { stw r6, r9[VPU_BIAS] ; shr r11, r2, 1 }       /* behind 16 bytes of the record */
    { zext r11, 1 ; add r0, r9, r4 }                /* with signs */
    { shr r5, r2, 5 ; zext r2, 1 }
    { zext r5, 1 ; add r0, r0, r4 }                 /* wide, fine */
    { add r2, r2, r5 ; ldc r5, RECORD_SHIFTS / 4 }
    { shl r2, r2, 1 ; shl r5, r5, 2 }
    { add r2, r2, r11 ; add r5, r5, r1 }
    { stw r2, r9[VPU_KIND] ; mov r6, r0 }
    { shl r11, r4, 4 ; add r7, r0, r4 }
    bl .Lsplit
    { bf r2, .Ldone ; shr r11, r2, 2 }
    { bt r11, .Lfine ; shr r11, r2, 1 }
    { bf r11, .Lsigns ; mov r11, r0 }

    { vldr r11[0] ; add r7, r7, r4 }                /* r7: own->low */
    { vlsub r3[0] ; ldaw r5, sp[READY_LEFT] }
    { vstr r5[0] ; mov r11, r8 }                    /* 16 - shift */
    { vldr r11[0] ; sub r3, r3, r4 }
    { vlsat r0[0] ; sub r3, r3, r4 }
    { vstr r7[0] ; sub r3, r3, r4 }
    { vldd r7[0] ; sub r3, r3, r4 }                 /* r3: zeros */
    { mov r11, r3 ; add r7, r7, r4 }
    { vldr r11[0] ; nop }
    { vlsat r5[0] ; nop }                           /* low * 2^16 >> 16 - shift */
    { vlsub r3[0] ; nop }
    { vstr r7[0] ; zext r2, 1 }
    { bt r2, .Lwith_signs ; nop }
    bu .Ldone

.Lfine:
    { mov r11, r8 ; add r3, r3, r4 }
    { vldr r11[0] ; add r7, r7, r4 }                /* r7: own->low */
    { vlsat r3[0] ; add r3, r3, r4 }                /* twos, then ones */
    { vstr r7[0] ; add r7, r7, r4 }
    { vldd r3[0] ; ldc r11, 6 }
    { shl r11, r11, 5 ; nop }
    { sub r11, r3, r11 ; nop }                      /* zeros */
    { vldr r11[0] ; mov r3, r11 }
    { vlsat r0[0] ; nop }
    { vstr r7[0] ; nop }
    bu .Lsigns_from_zeros

.Lsigns: /* r3: behind four constants */
    { shl r11, r4, 2 ; nop }
    { sub r3, r3, r11 ; nop }
.Lsigns_from_zeros:
    { zext r2, 1 ; nop }
    { bf r2, .Ldone ; nop }
.Lwith_signs: /* r3: zeros */
    { ldw r11, r1[RECORD_JUMPS] ; ldaw r5, sp[READY_TWICE] }
    { stw r11, r5[0] ; nop }
    { stw r11, r5[2] ; nop }
    { ldw r11, r1[RECORD_JUMPS + 1] ; shl r7, r4, 2 }
    { stw r11, r5[1] ; ldaw r6, sp[READY_LEFT] }
    { stw r11, r5[3] ; add r7, r7, r0 }             /* own->sign */
    { shl r11, r4, 4 ; nop }
    bl .Lsplit
    { mov r11, r6 ; mkmsk r5, 16 }
    { vldr r11[0] ; shl r5, r5, 16 }                /* the last eight lanes */
    vstrpv r7[0], r5
    { shl r11, r4, 1 ; nop }
    { add r11, r3, r11 ; nop }
    { add r11, r11, r4 ; nop }
    { vldr r11[0] ; nop }                           /* 2^14 - 1 */
    { vlsat r7[0] ; nop }
    { vstr r7[0] ; nop }
.Ldone:
    { shl r11, r4, 3 ; sub r10, r10, 1 }
    { sub r11, r11, r4 ; nop }                      /* the bytes of a group and of a record */
    { add r9, r9, r11 ; add r1, r1, r11 }
    bt r10, .Lgroup
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp READY_FRAME

    /* Halves of the 16 bytes at r5; r3: zeros, then behind the four vectors that this reads. */
    .align 4
.Lsplit: /* r11: 0x200, elements of 8 bits */
    { vsetc r11 ; add r11, r3, r4 }
    { vldd r3[0] ; add r3, r11, r4 }
    { vldr r11[0] ; nop }
    { vldc r3[0] ; add r3, r3, r4 }
    { vlmacc r5[0] ; shl r11, r4, 3 }               /* 0x100, of 16 bits */
    { vsetc r11 ; ldaw r11, sp[READY_BOTH] }
    { vstr r11[0] ; ldc r5, 4 }
    vlashr r11[0], r5
    { vstr r6[0] ; nop }
    { vldc r6[0] ; nop }
    { vldr r11[0] ; nop }
    { vlmacc r3[0] ; nop }
    { vstr r7[0] ; add r3, r3, r4 }
    retsp 0

    .align 4
    .fill 16, 2, 0
.Lconstants:
    .fill 16, 2, 0
    .fill 16, 2, 128
    .fill 16, 2, 0x101
    .fill 16, 2, -16
    .fill 16, 2, 16
    .fill 16, 2, 2
    .fill 16, 2, 1
    .fill 16, 2, 16383
    .size nn_vpu_ready_xs3, . - nn_vpu_ready_xs3
#endif
