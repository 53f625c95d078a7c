/* Start-up of a Cortex-M without a C library: vectors, memory, floating point, faults. */
#include "nn_fault.h"
#include "semihosting.h"

#include <string.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_CCR REGISTER(0xE000ED14)
#define SCB_SHCSR REGISTER(0xE000ED24)
#define SCB_CFSR REGISTER(0xE000ED28)
#define SCB_HFSR REGISTER(0xE000ED2C)
#define SCB_MMFAR REGISTER(0xE000ED34)
#define SCB_BFAR REGISTER(0xE000ED38)
#define SCB_CPACR REGISTER(0xE000ED88)

#define MPU_TYPE REGISTER(0xE000ED90)
#define MPU_CTRL REGISTER(0xE000ED94)
#define MPU_RBAR REGISTER(0xE000ED9C)
#define MPU_RASR REGISTER(0xE000EDA0)

#define CFSR_STKOF (1U << 20)
#define CFSR_MMARVALID (1U << 7)
#define CFSR_BFARVALID (1U << 15)
#ifdef __ARM_ARCH_6M__
#define EXCEPTION_UNDEFINED 3 /* every fault is a HardFault */
#else
#define EXCEPTION_UNDEFINED 6 /* UsageFault */
#endif
#define EXIT_FAULT 100 /* + the exception's number */

/* From the linker script. */
extern uint8_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint8_t __data_load[];
/* What a board's file puts into RAM, and where it is stored. */
extern uint32_t __nn_kernels_start[], __nn_kernels_end[], __nn_weights_start[], __nn_weights_end[];
extern const uint32_t __nn_kernels_load[], __nn_weights_load[];
extern uint32_t __stack_guard[], __stack_bottom[], __stack_top[];

int main(void);
#ifdef CHIP_START
void chip_start(void); /* of the board's chip: clock, wait states, caches (board_link/chip.h) */
#endif
__attribute__((noreturn)) void reset_handler(void);
void fault_handler(void);
__attribute__((noreturn)) void fault_report(const uint32_t *frame, uint32_t exception);

/* No interrupt is ever enabled: whatever arrives but reset is a fault. */
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack_top,
    (const void *)reset_handler,
    [2] = (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    [11] = (const void *)fault_handler,
    (const void *)fault_handler,
    [14] = (const void *)fault_handler,
    (const void *)fault_handler,
};

/* An overflow of the stack is a fault at once, not a strange result later. */
static void limit_stack(void) {
#if __ARM_ARCH >= 8
    __asm volatile("msr msplim, %0" : : "r"(__stack_bottom));
#else
    if (MPU_TYPE != 0) {
        MPU_RBAR = (uint32_t)__stack_guard | 1U << 4; /* region 0 */
        MPU_RASR = 1U << 28 | 7U << 1 | 1U;           /* no access, 256 bytes */
        MPU_CTRL = 1U << 2 | 1U;                      /* the default map elsewhere */
        __asm volatile("dsb\n isb" : : : "memory");
    }
#endif
}

/* What runs before the kernels, and memcpy with them, are in their RAM. */
#define BOOT(name) __attribute__((section(".text.boot." #name)))

#if defined(NN_KERNELS_COPIED) || defined(NN_WEIGHTS_COPIED)
/* Volatile, or it would become a call of memcpy. */
static inline void copy(volatile uint32_t *to, const uint32_t *end, const uint32_t *from) {
    while (to != end) {
        *to++ = *from++;
    }
}
#endif

BOOT(start) static void start(void) {
#ifdef NN_KERNELS_COPIED
    copy(__nn_kernels_start, __nn_kernels_end, __nn_kernels_load);
    __asm volatile("dsb\n isb" : : : "memory");
#endif
#ifdef NN_WEIGHTS_COPIED
    copy(__nn_weights_start, __nn_weights_end, __nn_weights_load);
#endif
#ifdef __ARM_ARCH_6M__
    SCB_CCR |= 1U << 3; /* an unaligned access is a fault: always so there, not on a later core */
#else
    SCB_SHCSR |= 7U << 16; /* memory, bus and usage faults of their own, for their names */
    SCB_CCR |= 1U << 4;    /* a division by zero is a fault */
#endif
    limit_stack();
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
#ifdef CHIP_START
    chip_start();
#endif
    semihosting_exit(main());
}

#ifdef __ARM_ARCH_6M__
BOOT(reset_handler) __attribute__((noreturn)) void reset_handler(void) {
    start();
    __builtin_unreachable();
}

/* The stack may be what broke: the report gets a fresh one. */
__attribute__((naked)) void fault_handler(void) {
    __asm volatile("mrs r0, msp\n"
                   "mrs r1, ipsr\n"
                   "ldr r2, =__stack_top\n"
                   "mov sp, r2\n"
                   "ldr r2, =fault_report\n"
                   "bx r2\n"
                   ".ltorg\n");
}
#else
/* No prologue may touch a floating-point register before the unit is enabled. */
BOOT(reset_handler) __attribute__((naked)) void reset_handler(void) {
    __asm volatile("ldr r0, =0xE000ED88\n" /* CPACR: full access to CP10 and CP11 */
                   "ldr r1, [r0]\n"
                   "orr r1, r1, #0xF00000\n"
                   "str r1, [r0]\n"
                   "dsb\n"
                   "isb\n"
                   "b %c0\n"
                   ".ltorg\n"
                   :
                   : "i"(start));
}

/* The stack may be what broke: the report gets a fresh one. */
__attribute__((naked)) void fault_handler(void) {
    __asm volatile("tst lr, #4\n"
                   "ite eq\n"
                   "mrseq r0, msp\n"
                   "mrsne r0, psp\n"
                   "mrs r1, ipsr\n"
                   "ldr r2, =__stack_top\n"
                   "mov sp, r2\n"
                   "b fault_report\n"
                   ".ltorg\n");
}
#endif

static const char *exception_name(uint32_t exception) {
    switch (exception) {
    case 2:
        return "NMI";
    case 3:
        return "HardFault";
    case 4:
        return "MemManage";
    case 5:
        return "BusFault";
    case 6:
        return "UsageFault";
    case 7:
        return "SecureFault";
    default:
        return "unexpected exception";
    }
}

/* What a kernel says that stopped the program itself. */
static void print_reason(const uint32_t *frame) {
    const uint16_t *pc = (const uint16_t *)frame[6];
    const nn_fault *fault = (const nn_fault *)frame[0];
    if (*pc == NN_FAULT_OPCODE) {
        semihosting_print(": ");
        semihosting_print(fault->what);
        semihosting_print(": ");
        semihosting_print_number(fault->wanted);
        semihosting_print(" wanted, ");
        semihosting_print_number(fault->given);
        semihosting_print(" given;");
    }
}

/* Prints the fault's registers and ends the program. `frame` is what the core stacked: r0-r3, r12,
 * lr, pc, xpsr. */
__attribute__((used)) void fault_report(const uint32_t *frame, uint32_t exception) {
    const uint32_t cfsr = SCB_CFSR;
    semihosting_print("fault: ");
    semihosting_print(exception_name(exception));
    if (frame < __stack_bottom || frame + 8 > __stack_top || (cfsr & CFSR_STKOF) != 0) {
        semihosting_print_hex(" after a stack overflow, sp=", (uint32_t)frame);
    } else {
        if (exception == EXCEPTION_UNDEFINED) {
            print_reason(frame);
        }
        semihosting_print_hex(" at pc=", frame[6]);
        semihosting_print_hex(" lr=", frame[5]);
        semihosting_print_hex(" sp=", (uint32_t)frame);
    }
    semihosting_print_hex(" cfsr=", cfsr);
    semihosting_print_hex(" hfsr=", SCB_HFSR);
    if ((cfsr & CFSR_BFARVALID) != 0) {
        semihosting_print_hex(" address=", SCB_BFAR);
    } else if ((cfsr & CFSR_MMARVALID) != 0) {
        semihosting_print_hex(" address=", SCB_MMFAR);
    }
    semihosting_print("\n");
    semihosting_exit(EXIT_FAULT + (int)exception);
}
