/* intptr_t semihosting_call(uint32_t operation, const void *argument): arguments and result are
 * where the trap wants them. Only these three instructions, uncompressed and on one page, are a
 * semihosting call; any other ebreak is a breakpoint. */
    .section .text.semihosting_call, "ax", @progbits
    .globl semihosting_call
    .type semihosting_call, @function
    .option norvc
    .balign 16
semihosting_call:
    slli x0, x0, 0x1f
    ebreak
    srai x0, x0, 7
    ret
    .size semihosting_call, . - semihosting_call
