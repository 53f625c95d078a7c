/* How a function in assembly begins and ends; for .S files, each in a section of its own.
 *
 * A debugger unwinds these functions by .debug_frame: every change of the stack pointer is said.
 * Where the compiler protects branches, functions begin with BTI, since some are called by their
 * address.
 */
#ifndef NN_MVE_FUNCTION_H
#define NN_MVE_FUNCTION_H

/* clang-format off */
    .syntax unified
    .thumb
    .cfi_sections .debug_frame

    /* Where BX or BLX may arrive. */
    .macro landing
#ifdef __ARM_FEATURE_BTI_DEFAULT
    bti
#endif
    .endm

    .macro function name
    .section .text.\name, "ax", %progbits
    .p2align 2
    .global \name
    .type \name, %function
    .thumb_func
\name:
    .cfi_startproc
    landing
    .endm

    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm

    .macro push_lr
    push        {lr}
    .cfi_def_cfa_offset 4
    .cfi_offset lr, -4
    .endm

    .macro push_r4_to_r8
    push        {r4-r8, lr}
    .cfi_def_cfa_offset 24
    .cfi_offset r4, -24
    .cfi_offset r5, -20
    .cfi_offset r6, -16
    .cfi_offset r7, -12
    .cfi_offset r8, -8
    .cfi_offset lr, -4
    .endm

    .macro push_r4_to_r11
    push        {r4-r11, lr}
    .cfi_def_cfa_offset 36
    .cfi_offset r4, -36
    .cfi_offset r5, -32
    .cfi_offset r6, -28
    .cfi_offset r7, -24
    .cfi_offset r8, -20
    .cfi_offset r9, -16
    .cfi_offset r10, -12
    .cfi_offset r11, -8
    .cfi_offset lr, -4
    .endm

    /* d8 to d15, behind registers that were pushed before. */
    .macro push_vectors
    vpush       {d8-d15}
    .cfi_adjust_cfa_offset 64
    .cfi_rel_offset d8, 0
    .cfi_rel_offset d9, 8
    .cfi_rel_offset d10, 16
    .cfi_rel_offset d11, 24
    .cfi_rel_offset d12, 32
    .cfi_rel_offset d13, 40
    .cfi_rel_offset d14, 48
    .cfi_rel_offset d15, 56
    .endm

    .macro pop_vectors
    vpop        {d8-d15}
    .cfi_adjust_cfa_offset -64
    .cfi_restore d8
    .cfi_restore d9
    .cfi_restore d10
    .cfi_restore d11
    .cfi_restore d12
    .cfi_restore d13
    .cfi_restore d14
    .cfi_restore d15
    .endm
/* clang-format on */

#endif
