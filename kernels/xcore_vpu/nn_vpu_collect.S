/* Collects the taps of a pixel, padding among them, one row behind the other.
 *
 *   void nn_vpu_collect_xs3(const nn_vpu_patch *, int8_t *to, const int8_t *from)
 *
 * Registers:
 *   r0   the nn_vpu_patch   r1  where to    r2  where the row lies   r3  32
 *   r4   bytes              r5  a word      r6  rows that are left
 *   r7   whether there is padding           r8  whether all are words, at multiples of 4
 *   r9   where the next byte goes           r10, r11  addresses
 *
 * Schedule: a row of 32 bytes and more takes 3 issues for each vector and 4 for the last one, which
 * lies over the one before it; a shorter one 3 for each word; otherwise 3 for each
 * byte.
 */
#ifdef __XS3A__
#include "nn_vpu_offsets.h"

    .section .text.nn_vpu_collect_xs3, "ax"
    .issue_mode dual
    .globl nn_vpu_collect_xs3
    .type nn_vpu_collect_xs3, @function
    .globl nn_vpu_collect_xs3.nstackwords
    .set nn_vpu_collect_xs3.nstackwords, 8
    .align 16
nn_vpu_collect_xs3:
    dualentsp 8
    { stw r4, sp[1] ; ldc r3, 32 }
    { stw r5, sp[2] ; nop }
    { stw r6, sp[3] ; nop }
    { stw r7, sp[4] ; nop }
    { stw r8, sp[5] ; nop }
    { stw r9, sp[6] ; nop }
    { stw r10, sp[7] ; nop }
    { ldw r7, r0[PATCH_PADDED] ; nop }
    { ldw r8, r0[PATCH_WORDS] ; nop }
    { ldw r6, r0[PATCH_ROWS] ; nop }
    { bf r7, .Lrow ; nop }
    { ldw r4, r0[PATCH_HEAD] ; nop }
    bl .Lfill
    { bf r6, .Lbelow ; nop }
.Lrow:
    { bf r7, .Lcopy ; nop }
    { ldw r4, r0[PATCH_BEFORE] ; nop }
    bl .Lfill
.Lcopy:
    { ldw r4, r0[PATCH_BYTES] ; nop }
    { bt r8, .Lwords ; add r9, r1, r4 }
    { sub r4, r4, 1 ; nop }
.Lbyte:
    { ld8u r5, r2[r4] ; sub r10, r4, 1 }
    st8 r5, r1[r4]
    { bf r4, .Lcopied ; sub r4, r4, 2 }
    { ld8u r5, r2[r10] ; nop }
    st8 r5, r1[r10]
    { bt r10, .Lbyte ; nop }
.Lcopied:
    { bf r7, .Lnext ; mov r1, r9 }
    { ldw r4, r0[PATCH_AFTER] ; nop }
    bl .Lfill
.Lnext:
    { ldw r11, r0[PATCH_ROW_STEP] ; sub r6, r6, 1 }
    { ldw r10, r0[PATCH_RING_END] ; add r2, r2, r11 }
    { ldw r11, r0[PATCH_RING] ; lsu r10, r2, r10 }
    { bt r10, .Linside ; nop }
    { sub r2, r2, r11 ; nop }
.Linside:
    { bt r6, .Lrow ; nop }
    { bf r7, .Lreturn ; nop }
.Lbelow:
    { ldw r4, r0[PATCH_TAIL] ; nop }
    bl .Lfill
.Lreturn:
    { ldw r4, sp[1] ; nop }
    { ldw r5, sp[2] ; nop }
    { ldw r6, sp[3] ; nop }
    { ldw r7, sp[4] ; nop }
    { ldw r8, sp[5] ; nop }
    { ldw r9, sp[6] ; nop }
    { ldw r10, sp[7] ; nop }
    retsp 8

.Lwords:
    { shr r5, r4, 5 ; mov r10, r2 }
    { bf r5, .Lshort ; mov r11, r1 }
.Lvector:
    { vldd r10[0] ; add r10, r10, r3 }
    { vstd r11[0] ; sub r5, r5, 1 }
    { bt r5, .Lvector ; add r11, r11, r3 }
    { add r10, r2, r4 ; sub r11, r9, r3 }
    { sub r10, r10, r3 ; nop }
    { vldd r10[0] ; nop }
    { vstd r11[0] ; nop }
    bu .Lcopied
.Lshort:
    { shr r4, r4, 2 ; nop }
    { sub r4, r4, 1 ; nop }
.Lword:
    { ldw r5, r2[r4] ; nop }
    stw r5, r1[r4]
    { bt r4, .Lword ; sub r4, r4, 1 }
    bu .Lcopied

    /* r4 bytes of padding, perhaps none. */
    .align 4
.Lfill:
    { bf r4, .Lfilled ; add r9, r1, r4 }
    { ldw r5, r0[PATCH_VALUE] ; sub r4, r4, 1 }
    { bt r8, .Lfill_words ; shr r10, r4, 2 }
.Lfill_byte:
    st8 r5, r1[r4]
    { bt r4, .Lfill_byte ; sub r4, r4, 1 }
    { mov r1, r9 ; nop }
    retsp 0
.Lfill_words:
    stw r5, r1[r10]
    { bt r10, .Lfill_words ; sub r10, r10, 1 }
    { mov r1, r9 ; nop }
.Lfilled:
    retsp 0
    .size nn_vpu_collect_xs3, . - nn_vpu_collect_xs3

/* The outputs of pixels whose taps are collected first, one pixel after the other.
 *
 *   void nn_vpu_patches_xs3(const nn_vpu_patch *, const int8_t *from, int8_t *to, int32_t pixels,
 *                           const nn_vpu_group *, const nn_vpu_runs *, int32_t more)
 *
 * Registers: r4 the nn_vpu_patch, r5 where the next pixel's taps lie, r6 where its outputs go,
 * r7 pixels behind this one, r8 the group, r9 the nn_vpu_runs, r10 groups behind it.
 */
#define PATCHES_FRAME 12

    .section .text.nn_vpu_patches_xs3, "ax"
    .globl nn_vpu_patches_xs3
    .type nn_vpu_patches_xs3, @function
    .globl nn_vpu_patches_xs3.nstackwords
    .set nn_vpu_patches_xs3.nstackwords, PATCHES_FRAME + nn_vpu_pixels_xs3.nstackwords
    .align 16
nn_vpu_patches_xs3:
    dualentsp PATCHES_FRAME
    { stw r4, sp[3] ; mov r4, r0 }
    { stw r5, sp[4] ; mov r5, r1 }
    { stw r6, sp[5] ; mov r6, r2 }
    { stw r7, sp[6] ; sub r7, r3, 1 }
    { stw r8, sp[7] ; mkmsk r0, 1 }
    { stw r9, sp[8] ; nop }
    { stw r10, sp[9] ; nop }
    { stw r0, sp[1] ; nop }                         /* one pixel a call */
    { ldw r8, sp[PATCHES_FRAME + 1] ; nop }
    { ldw r9, sp[PATCHES_FRAME + 2] ; nop }
    { ldw r10, sp[PATCHES_FRAME + 3] ; nop }
.Lpatch:
    { mov r0, r4 ; ldc r11, PATCH_TO }
    { ldw r1, r4[r11] ; mov r2, r5 }
    bl nn_vpu_collect_xs3
    { mov r0, r8 ; ldc r11, PATCH_TO }
    { ldw r2, r4[r11] ; mov r1, r9 }
    { stw r10, sp[2] ; mov r3, r6 }
    bl nn_vpu_pixels_xs3
    { ldc r11, PATCH_X_STEP ; mov r2, r7 }
    { ldw r0, r4[r11] ; add r11, r11, 1 }
    { ldw r1, r4[r11] ; add r5, r5, r0 }
    { add r6, r6, r1 ; sub r7, r7, 1 }
    { bt r2, .Lpatch ; nop }
    { ldw r4, sp[3] ; nop }
    { ldw r5, sp[4] ; nop }
    { ldw r6, sp[5] ; nop }
    { ldw r7, sp[6] ; nop }
    { ldw r8, sp[7] ; nop }
    { ldw r9, sp[8] ; nop }
    { ldw r10, sp[9] ; nop }
    retsp PATCHES_FRAME
    .size nn_vpu_patches_xs3, . - nn_vpu_patches_xs3
#endif
