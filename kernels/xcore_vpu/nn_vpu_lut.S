/* Functions of one byte by a table, a word at a time: what look_up of nn_lut_s8_vpu.c does.
 *
 *   void nn_vpu_lut_xs3(const uint8_t *table, const int8_t *in, int8_t *out, int32_t words)
 *
 * Registers:
 *   r0  the table    r1, r2  the next words    r3  words that are left    r4-r8  a word and its bytes
 *
 * Schedule: 12 issues for four bytes. Seven touch memory or branch; 16 others have nowhere else to go.
 */
#ifdef __XS3A__

#define LUT_FRAME 6

    .section .text.nn_vpu_lut_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_lut_xs3
    .type nn_vpu_lut_xs3, @function
    .globl nn_vpu_lut_xs3.nstackwords
    .set nn_vpu_lut_xs3.nstackwords, LUT_FRAME
    .align 16
nn_vpu_lut_xs3:
    dualentsp LUT_FRAME
    { stw r4, sp[1] ; nop }
    { stw r5, sp[2] ; nop }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
.Lword:
    { ldw r4, r1[0] ; add r1, r1, 4 }
    { mov r5, r4 ; shr r6, r4, 8 }
    { zext r5, 8 ; zext r6, 8 }
    { ld8u r5, r0[r5] ; shr r7, r4, 16 }
    { ld8u r6, r0[r6] ; zext r7, 8 }
    { ld8u r7, r0[r7] ; shr r8, r4, 24 }
    { ld8u r8, r0[r8] ; shl r6, r6, 8 }
    { add r5, r5, r6 ; shl r7, r7, 16 }
    { add r5, r5, r7 ; shl r8, r8, 24 }
    { add r5, r5, r8 ; sub r3, r3, 1 }
    { stw r5, r2[0] ; add r2, r2, 4 }
    { bt r3, .Lword ; nop }
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    retsp LUT_FRAME
    .size nn_vpu_lut_xs3, . - nn_vpu_lut_xs3
#endif
