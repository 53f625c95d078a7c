/* Start-up of a Cortex-M4F with newlib: vectors, floating point, memory, then main. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CPACR (*(volatile uint32_t *)0xE000ED88)

/* From app.ld. */
extern uint32_t __stack_top[];
extern char __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const char __data_load[];

int main(void);
void initialise_monitor_handles(void); /* newlib's, for semihosting: opens standard output */
void __libc_init_array(void); /* newlib's: calls _init and what is constructed before main */
void _init(void);
void _fini(void);
void reset_handler(void);

void _init(void) {
}
void _fini(void) {
}

__attribute__((noreturn, noinline)) static void start(void) {
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    initialise_monitor_handles();
    __libc_init_array();
    exit(main());
}

void reset_handler(void) {
    CPACR |= 0xFU << 20; /* before any function that may use the floating-point registers */
    __asm volatile("dsb\n isb");
    start();
}

static void fault_handler(void) {
    _Exit(1);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack_top,
    (const void *)reset_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
    (const void *)fault_handler,
};
