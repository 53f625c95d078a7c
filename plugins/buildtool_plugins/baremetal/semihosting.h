/* Files, text and exit through the debugger or emulator (Arm's semihosting interface). */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdint.h>

/* The architecture's trap; in the target family's folder. */
intptr_t semihosting_call(uint32_t operation, const void *argument);

void semihosting_print(const char *text);
/* "name0x0123abcd", for registers. */
void semihosting_print_hex(const char *name, uint32_t value);
void semihosting_print_number(int32_t value);
__attribute__((noreturn)) void semihosting_exit(int code);

#endif
