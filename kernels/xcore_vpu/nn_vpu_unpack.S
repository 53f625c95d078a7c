/* What follows from a group's record, made once for all its pixels of a call.
 *
 *   void nn_vpu_unpack_xs3(nn_vpu_unpacked *own, const nn_vpu_record *record, int32_t kind)
 *
 * It does what nn_vpu_split and nn_vpu_unpack_* of nn_vpu_requantise.h do.
 *
 * Registers:
 *   r0   `own`; its vectors: shift, down, low, power, sign
 *   r1   the record    r2  the kind    r4  32, the bytes of a vector
 *   r3   constants     r5  the bytes to split    r6, r7  where their upper and lower halves go
 *   r8   the record's factors
 *
 * Schedule: an issue for each operation of the unit, addresses in its bundle.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define UNPACK_FRAME 32
#define UNPACK_BOTH 8 /* vectors */
#define UNPACK_LEFT 16
#define UNPACK_TWICE 24

    .section .text.nn_vpu_unpack_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_unpack_xs3
    .type nn_vpu_unpack_xs3, @function
    .align 16
nn_vpu_unpack_xs3:
    dualentsp UNPACK_FRAME
    ldap r11, .Lconstants
    { stw r4, sp[1] ; mov r3, r11 }
    { stw r5, sp[2] ; ldc r4, 32 }
    { stw r6, sp[3] ; ldc r5, RECORD_SHIFTS / 4 }
    { stw r7, sp[4] ; shl r5, r5, 2 }
    { stw r8, sp[5] ; ldc r8, RECORD_AS / 4 }
    { shl r8, r8, 2 ; add r7, r0, r4 }
    { add r5, r5, r1 ; add r8, r8, r1 }
    { mov r6, r0 ; nop }
    bl .Lsplit
    { bf r2, .Ldone ; shr r11, r2, 2 }
    { bt r11, .Lfine ; shr r11, r2, 1 }
    { bf r11, .Lsigns ; mov r11, r0 }

    { vldr r11[0] ; add r7, r7, r4 }                /* r7: own->low */
    { vlsub r3[0] ; ldaw r5, sp[UNPACK_LEFT] }
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
    { ldw r11, r1[RECORD_JUMPS] ; ldaw r5, sp[UNPACK_TWICE] }
    { stw r11, r5[0] ; nop }
    { stw r11, r5[2] ; nop }
    { ldw r11, r1[RECORD_JUMPS + 1] ; shl r7, r4, 2 }
    { stw r11, r5[1] ; ldaw r6, sp[UNPACK_LEFT] }
    { stw r11, r5[3] ; add r7, r7, r0 }             /* own->sign */
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
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    retsp UNPACK_FRAME

    /* Halves of the 16 bytes at r5; r3: zeros, then behind the four vectors that this reads. */
    .align 4
.Lsplit:
    { shl r11, r4, 4 ; nop }                        /* 0x200, elements of 8 bits */
    { vsetc r11 ; add r11, r3, r4 }
    { vldd r3[0] ; add r3, r11, r4 }
    { vldr r11[0] ; nop }
    { vldc r3[0] ; add r3, r3, r4 }
    { vlmacc r5[0] ; shl r11, r4, 3 }               /* 0x100, of 16 bits */
    { vsetc r11 ; ldaw r11, sp[UNPACK_BOTH] }
    { vstr r11[0] ; ldc r5, 4 }
    vlashr r11[0], r5
    { vstr r6[0] ; nop }
    { vldc r6[0] ; nop }
    { vldr r11[0] ; nop }
    { vlmacc r3[0] ; nop }
    { vstr r7[0] ; add r3, r3, r4 }
    retsp 0

    .align 4
.Lconstants:
    .fill 16, 2, 0
    .fill 16, 2, 128
    .fill 16, 2, 0x101
    .fill 16, 2, -16
    .fill 16, 2, 16
    .fill 16, 2, 2
    .fill 16, 2, 1
    .fill 16, 2, 16383
    .size nn_vpu_unpack_xs3, . - nn_vpu_unpack_xs3
#endif
