/* Additions of bytes by a linear form, 32 elements at a time: what add_block of nn_add_s8_vpu.c does.
 *
 *   void nn_vpu_add_xs3(const addition *, const int8_t *a, const int8_t *b, int8_t *out,
 *                       int32_t blocks)
 *
 * Registers:
 *   r0  the addition    r1, r2  the next bytes    r3  where sums go    r4  blocks that are left
 *   r5  32              r6  8                     r7  -7               r8  the addition's by_256
 *   r9  lanes           r10 factors               r11 addresses
 *
 * Schedule: a block has 46 operations of the unit, six more where outputs are bounded, and 14
 * issues beside them.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

#define ADD_FRAME 80
#define ADD_CLAMP 8 /* what bounds outputs, or 0 */
#define ADD_ODD 9   /* masks of bytes */
#define ADD_EVEN 10
#define ADD_LANES 12 /* eight vectors: of both operands by 128 and 1, 256 and 1 */
#define ADD_SECOND 44

    .section .text.nn_vpu_add_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_add_xs3
    .type nn_vpu_add_xs3, @function
    .globl nn_vpu_add_xs3.nstackwords
    .set nn_vpu_add_xs3.nstackwords, ADD_FRAME
    .align 16
nn_vpu_add_xs3:
    dualentsp ADD_FRAME
    { stw r4, sp[1] ; ldc r11, ADDITION_CLAMP / 8 }
    { stw r5, sp[2] ; ldc r5, 32 }
    { stw r6, sp[3] ; shl r11, r11, 3 }
    { stw r7, sp[4] ; add r11, r11, r0 }
    { stw r8, sp[5] ; ldc r6, 8 }
    { stw r9, sp[6] ; ldc r7, 7 }
    { stw r10, sp[7] ; neg r7, r7 }
    { ldw r4, r11[0] ; add r8, r0, r5 }
    { bf r4, .Lunbounded ; add r8, r8, r5 }
    { add r4, r11, 4 ; nop }
.Lunbounded:
    { stw r4, sp[ADD_CLAMP] ; add r8, r8, r5 }
    ldap r11, .Lodd_bytes
    { ldw r11, r11[0] ; nop }
    { stw r11, sp[ADD_ODD] ; shr r11, r11, 1 }
    { stw r11, sp[ADD_EVEN] ; nop }
    ldw r4, sp[ADD_FRAME + 1]
.Lblock:
    vlashr r1[0], r6                                /* the first operand's lanes */
    { ldaw r9, sp[ADD_LANES] ; nop }
    { add r11, r9, r5 ; nop }
    { vstr r11[0] ; nop }
    vlashr r11[0], r7
    { vstr r9[0] ; add r11, r11, r5 }
    { vclrdr ; add r9, r11, r5 }
    { vldc r8[0] ; nop }
    { vlmacc r1[0] ; add r1, r1, r5 }
    { vstr r11[0] ; nop }
    vlashr r11[0], r6
    { vstr r9[0] ; ldaw r9, sp[ADD_SECOND] }
    vlashr r2[0], r6                                /* the second one's */
    { add r11, r9, r5 ; nop }
    { vstr r11[0] ; nop }
    vlashr r11[0], r7
    { vstr r9[0] ; add r11, r11, r5 }
    { vclrdr ; add r9, r11, r5 }
    { vldc r8[0] ; nop }
    { vlmacc r2[0] ; add r2, r2, r5 }
    { vstr r11[0] ; add r10, r8, r5 }
    vlashr r11[0], r6
    { vstr r9[0] ; ldaw r9, sp[ADD_LANES] }

    { vldd r0[0] ; add r11, r0, r5 }                /* odd bytes */
    { vldr r11[0] ; sub r11, r8, r0 }               /* 96, to the other operand */
    { vldc r10[0] ; add r10, r10, r5 }
    { vlmacc r9[0] ; add r9, r9, r5 }
    { vldc r10[0] ; add r10, r10, r11 }
    { vlmacc r9[0] ; add r9, r9, r11 }
    { vldc r10[0] ; add r10, r10, r5 }
    { vlmacc r9[0] ; add r9, r9, r5 }
    { vldc r10[0] ; sub r10, r10, r11 }
    { vlmacc r9[0] ; add r11, r0, r5 }
    { ldw r9, sp[ADD_CLAMP] ; add r11, r11, r5 }
    { vlsat r11[0] ; nop }
    { bf r9, .Lodd ; nop }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; nop }
.Lodd:
    { ldw r11, sp[ADD_ODD] ; nop }
    vstrpv r3[0], r11

    { vldd r0[0] ; add r11, r0, r5 }                /* even bytes */
    { vldr r11[0] ; ldaw r9, sp[ADD_LANES + 16] }
    { sub r11, r8, r0 ; nop }
    { vldc r10[0] ; add r10, r10, r5 }
    { vlmacc r9[0] ; add r9, r9, r5 }
    { vldc r10[0] ; add r10, r10, r11 }
    { vlmacc r9[0] ; add r9, r9, r11 }
    { vldc r10[0] ; add r10, r10, r5 }
    { vlmacc r9[0] ; add r9, r9, r5 }
    { vldc r10[0] ; add r11, r0, r5 }
    { vlmacc r9[0] ; add r11, r11, r5 }
    { ldw r9, sp[ADD_CLAMP] ; nop }
    { vlsat r11[0] ; ldaw r11, sp[ADD_LANES] }
    { bf r9, .Leven ; sub r4, r4, 1 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; add r9, r9, r5 }
    { vladd r9[0] ; nop }
.Leven:
    { vstr r11[0] ; nop }
    vlashr r11[0], r6
    { ldw r11, sp[ADD_EVEN] ; nop }
    vstrpv r3[0], r11
    { add r3, r3, r5 ; nop }
    bt r4, .Lblock
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp ADD_FRAME

    .align 4
.Lodd_bytes:
    .word 0xAAAAAAAA
    .size nn_vpu_add_xs3, . - nn_vpu_add_xs3
#endif
