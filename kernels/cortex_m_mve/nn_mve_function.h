/* How a function in assembly begins and ends; for .S files, each in a section of its own. */
#ifndef NN_MVE_FUNCTION_H
#define NN_MVE_FUNCTION_H

/* clang-format off */
    .syntax unified
    .thumb

    .macro function name
    .section .text.\name, "ax", %progbits
    .p2align 2
    .global \name
    .type \name, %function
    .thumb_func
\name:
    .endm

    .macro end name
    .size \name, . - \name
    .endm
/* clang-format on */

#endif
