/* The Thumb semihosting trap. */
#include "semihosting.h"

intptr_t semihosting_call(uint32_t operation, const void *argument) {
    register intptr_t r0 __asm("r0") = (intptr_t)operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
