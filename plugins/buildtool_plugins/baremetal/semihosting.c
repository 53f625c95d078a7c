/* Text and exit by semihosting: what start-up code and fault handlers need. A test firmware that
 * answers over a wire (-DNN_WIRE) has both of its own. */
#include "semihosting.h"

#define SYS_WRITE0 0x04
#define SYS_EXIT 0x18
#define SYS_EXIT_EXTENDED 0x20
#define RUN_TIME_ERROR 0x20023
#define APPLICATION_EXIT 0x20026

#ifndef NN_WIRE
void semihosting_print(const char *text) {
    (void)semihosting_call(SYS_WRITE0, text);
}
#endif

void semihosting_print_hex(const char *name, uint32_t value) {
    char digits[11] = "0x00000000";
    for (int i = 9; i > 1; i--) {
        digits[i] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    semihosting_print(name);
    semihosting_print(digits);
}

void semihosting_print_number(int32_t value) {
    char digits[12];
    char *first = digits + 11;
    uint32_t rest = value < 0 ? 0U - (uint32_t)value : (uint32_t)value;
    *first = '\0';
    do {
        *--first = (char)('0' + rest % 10U);
        rest /= 10U;
    } while (rest != 0);
    if (value < 0) {
        *--first = '-';
    }
    semihosting_print(first);
}

#ifndef NN_WIRE
void semihosting_exit(int code) {
    const uintptr_t block[2] = {APPLICATION_EXIT, (uintptr_t)code};
    for (;;) {
        (void)semihosting_call(SYS_EXIT_EXTENDED, block);
        /* The emulator could not read the block: it takes the stack for the guard below it, where
         * both are on one of its pages. */
        (void)semihosting_call(SYS_EXIT, (const void *)RUN_TIME_ERROR);
    }
}
#endif
