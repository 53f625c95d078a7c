    .section .nn_weights, "a", %progbits
    .balign 16
    .global probe_weights
probe_weights:
    .byte 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15

    .section .note.GNU-stack, "", %progbits
