/* Start-up of an Xtensa core with the call0 ABI and without a C library: memory, stack, faults. */
#include "semihosting.h"

#include <string.h>

#define EXIT_FAULT 100 /* + the exception's cause; 164 + kind without one */
#define KIND_DEBUG 1   /* as startup_vectors.S numbers the vectors */
#define KIND_EXCEPTION 3
#define WATCH_STORES 0x80000000U
#define WATCH_64_BYTES 0U /* the mask of address bits 0 to 5: none is compared */

/* From the linker script. */
extern uint8_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint8_t __data_load[];
extern uint8_t __stack_guard[], __stack_bottom[], __stack_top[];

int main(void);
__attribute__((noreturn)) void start(void);
__attribute__((noreturn)) void fault_report(uint32_t kind, uint32_t pc, uint32_t address,
                                            uint32_t sp, uint32_t cause);

/* An overflow of the stack is a fault at once, not a strange result later: the core's data
 * breakpoint watches the 64 bytes below it for stores. */
static void limit_stack(void) {
#if defined(__XTENSA_CALL0_ABI__)
    __asm volatile("wsr.dbreaka0 %0\n"
                   "wsr.dbreakc0 %1\n"
                   "dsync"
                   :
                   : "r"((uint32_t)__stack_bottom - 64U), "r"(WATCH_STORES | WATCH_64_BYTES)
                   : "memory");
#endif
}

__attribute__((used)) void start(void) {
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    limit_stack();
    semihosting_exit(main());
}

static const char *cause_name(uint32_t kind, uint32_t cause) {
    static const char *const names[] = {
        [0] = "illegal instruction",
        [1] = "syscall instruction",
        [2] = "instruction fetch error",
        [3] = "load or store error",
        [4] = "interrupt",
        [6] = "integer division by zero",
        [8] = "privileged instruction",
        [9] = "unaligned load or store",
        [12] = "instruction bus error",
        [13] = "load or store bus error",
        [14] = "instruction bus error",
        [15] = "load or store bus error",
        [16] = "instruction fetch error",
        [20] = "instruction fetch prohibited",
        [24] = "load or store error",
        [28] = "load prohibited",
        [29] = "store prohibited",
    };
    if (kind == KIND_DEBUG) {
        return "debug exception";
    }
    const char *name =
        kind == KIND_EXCEPTION && cause < sizeof names / sizeof *names ? names[cause] : NULL;
    return name != NULL ? name : "unexpected exception";
}

/* Prints the exception's registers and ends the program. */
__attribute__((used)) void fault_report(uint32_t kind, uint32_t pc, uint32_t address, uint32_t sp,
                                        uint32_t cause) {
    semihosting_print("fault: ");
    semihosting_print(cause_name(kind, cause));
    if (kind == KIND_DEBUG || sp < (uint32_t)__stack_bottom || sp > (uint32_t)__stack_top) {
        semihosting_print(" after a stack overflow");
    }
    semihosting_print_hex(" at pc=", pc);
    semihosting_print_hex(" sp=", sp);
    semihosting_print_hex(" exccause=", cause);
    semihosting_print_hex(" address=", address);
    semihosting_print("\n");
    semihosting_exit(EXIT_FAULT + (int)(kind == KIND_EXCEPTION ? cause & 63U : 64U + kind));
}
