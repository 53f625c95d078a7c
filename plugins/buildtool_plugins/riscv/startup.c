/* Start-up of a RISC-V core in machine mode without a C library: memory, vectors, traps. */
#include "semihosting.h"

#include <string.h>

#define MSTATUS_FS_VS 0x6600 /* both dirty: floating point and vectors, where the core has them */
#define PMP_LOCKED_NAPOT 0x98
#define PMP_LOCKED_UP_TO 0x88
#define EXIT_FAULT 100 /* + mcause */

/* From the linker script. */
extern uint8_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint8_t __data_load[];
extern uint8_t __stack_guard[], __stack_bottom[], __stack_top[];

int main(void);
__attribute__((noreturn)) void reset_handler(void);
void trap_handler(void);
__attribute__((noreturn)) void trap_report(uintptr_t cause, uintptr_t pc, uintptr_t value,
                                           uintptr_t sp);

#define READ_CSR(name, to) __asm volatile("csrr %0, " name : "=r"(to))

/* An overflow of the stack is a fault at once, not a strange result later: a locked region binds
 * machine mode too. NN_NO_RAM_FROM: emulated memory that the chip does not have lies from there to
 * the stack. */
static void limit_stack(void) {
#ifdef NN_NO_RAM_FROM
    if ((uintptr_t)__stack_guard > NN_NO_RAM_FROM) { /* in the emulator alone */
        __asm volatile("csrw pmpaddr0, %0\n"
                       "csrw pmpaddr1, %1\n"
                       "csrw pmpcfg0, %2"
                       :
                       : "r"(NN_NO_RAM_FROM >> 2), "r"((uintptr_t)__stack_guard >> 2),
                         "r"(PMP_LOCKED_UP_TO << 8)
                       : "memory");
    }
#endif
    const uint32_t bytes = (uint32_t)(__stack_bottom - __stack_guard);
    if (bytes != 0) {
        const uintptr_t address = (uintptr_t)__stack_guard >> 2 | ((bytes >> 3) - 1);
        __asm volatile("csrw pmpaddr0, %0\n"
                       "csrw pmpcfg0, %1"
                       :
                       : "r"(address), "r"(PMP_LOCKED_NAPOT)
                       : "memory");
    }
}

__attribute__((noreturn, used)) static void start(void) {
    limit_stack();
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    semihosting_exit(main());
}

/* First in memory: where the cores begin. */
__attribute__((section(".vectors"), naked)) void reset_handler(void) {
    __asm volatile("csrw mie, zero\n"
                   "la t0, trap_handler\n"
                   "csrw mtvec, t0\n"
                   "li t0, %0\n"
                   "csrs mstatus, t0\n"
                   "la sp, __stack_top\n"
                   "tail %1\n"
                   :
                   : "i"(MSTATUS_FS_VS), "i"(start));
}

/* No interrupt is ever enabled: whatever arrives is a fault. The stack may be what broke: the
 * report gets a fresh one. */
__attribute__((naked, aligned(4))) void trap_handler(void) {
    __asm volatile("mv a3, sp\n"
                   "la sp, __stack_top\n"
                   "csrr a0, mcause\n"
                   "csrr a1, mepc\n"
                   "csrr a2, mtval\n"
                   "tail trap_report\n");
}

static const char *cause_name(uintptr_t cause) {
    static const char *const names[] = {
        "instruction address misaligned",
        "instruction access fault",
        "illegal instruction",
        "breakpoint",
        "load address misaligned",
        "load access fault",
        "store address misaligned",
        "store access fault",
    };
    return cause < sizeof names / sizeof *names ? names[cause] : "unexpected trap";
}

/* Prints the trap's registers and ends the program. */
__attribute__((used)) void trap_report(uintptr_t cause, uintptr_t pc, uintptr_t value,
                                       uintptr_t sp) {
    semihosting_print("fault: ");
    semihosting_print(cause_name(cause));
    if (sp < (uintptr_t)__stack_bottom || sp > (uintptr_t)__stack_top) {
        semihosting_print(" after a stack overflow");
    }
    semihosting_print_hex(" at pc=", (uint32_t)pc);
    semihosting_print_hex(" sp=", (uint32_t)sp);
    semihosting_print_hex(" mcause=", (uint32_t)cause);
    semihosting_print_hex(" address=", (uint32_t)value);
    semihosting_print("\n");
    semihosting_exit(EXIT_FAULT + (int)(cause & 31));
}
