/* Reset and exception vectors, at the start of code: an offset each, from VECBASE on, as the LX106
 * has them. No interrupt is ever enabled: whatever arrives but reset is a fault. */
    .section .vectors, "ax", @progbits
    .globl reset_handler
    .type reset_handler, @function
    .balign 256
vector_base:
reset_handler:
    j begin

#if defined(__XTENSA_CALL0_ABI__)
    .macro vector offset, kind
    .org vector_base + \offset
    movi a2, \kind
    j fault_entry
    .endm
    vector 0x10, 1 /* debug: the watched bytes below the stack */
    vector 0x20, 2 /* NMI */
    vector 0x30, 3 /* exceptions of the kernel's mode, the one there is here */
    vector 0x50, 3 /* of the user's mode */
    vector 0x70, 4 /* in a handler */
#endif
    .size reset_handler, . - reset_handler

    .section .text.begin, "ax", @progbits
    .balign 4
    .literal_position
    .type begin, @function
begin:
#if defined(__XTENSA_CALL0_ABI__)
    movi a0, vector_base
    wsr.vecbase a0
    movi a0, 1 /* level 1 masked; the level of debug exceptions is not */
    wsr.ps a0
    rsync
    movi a1, __stack_top
    movi a2, start
    jx a2
#else /* registers in windows: an image for its sizes, which ESP-IDF's own start-up replaces */
    movi a2, 1
    wsr.windowstart a2
    movi a2, 0
    wsr.windowbase a2
    movi a2, 0x40001 /* PS: window exceptions on, level 1 masked */
    wsr.ps a2
    rsync
    movi a1, __stack_top
    movi a4, start
    callx4 a4
#endif
    .size begin, . - begin

/* a2: the vector's kind. The stack may be what broke: the report gets a fresh one. */
#if defined(__XTENSA_CALL0_ABI__)
    .section .text.fault_entry, "ax", @progbits
    .balign 4
    .literal_position
    .type fault_entry, @function
fault_entry:
    mov a5, a1
    rsr.exccause a6
    rsr.excvaddr a4
    rsr.epc1 a3
    beqi a2, 3, 1f
    rsr.epc2 a3
    beqi a2, 1, 1f
    rsr.epc3 a3
    beqi a2, 2, 1f
    rsr.depc a3
1:
    movi a1, __stack_top
    movi a0, 1
    wsr.ps a0
    rsync
    movi a7, fault_report
    jx a7
    .size fault_entry, . - fault_entry
#endif
