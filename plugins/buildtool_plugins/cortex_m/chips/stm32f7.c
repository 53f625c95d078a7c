/* STM32F7 after a reset: its clock from the PLL with over-drive, the accelerator of its flash, and
 * the core's caches. Written after RM0385 and RM0410, and not run: no board was at hand. */
#include "chip.h"

#include "stm32_pll.h"

#define ACR_PREFETCH (1U << 8)
#define ACR_ACCELERATOR (1U << 9)
#define CR1_OVERDRIVE (1U << 16)
#define CR1_OVERDRIVE_SWITCH (1U << 17)
#define CSR1_OVERDRIVE_READY (1U << 16)
#define CSR1_OVERDRIVE_SWITCHED (1U << 17)

#define SCB_CCR STM32_REGISTER(0xE000ED14)
#define SCB_CCSIDR STM32_REGISTER(0xE000ED80)
#define SCB_CSSELR STM32_REGISTER(0xE000ED84)
#define SCB_ICIALLU STM32_REGISTER(0xE000EF50)
#define SCB_DCISW STM32_REGISTER(0xE000EF60)
#define CCR_INSTRUCTIONS (1U << 17)
#define CCR_DATA (1U << 16)

static void barrier(void) {
    __asm volatile("dsb\n isb" : : : "memory");
}

/* Both caches are invalid before they are on: what is in them after a reset is not known. */
static void start_caches(void) {
    SCB_CSSELR = 0; /* the data cache */
    barrier();
    const uint32_t size = SCB_CCSIDR, sets = size >> 13 & 0x7FFF, ways = size >> 3 & 0x3FF;
    for (uint32_t set = 0; set <= sets; set++) {
        for (uint32_t way = 0; way <= ways; way++) {
            SCB_DCISW = way << 30 | set << 5; /* 4 ways, lines of 32 bytes */
        }
    }
    SCB_ICIALLU = 0;
    barrier();
    SCB_CCR |= CCR_INSTRUCTIONS | CCR_DATA;
    barrier();
}

/* Above 180 MHz the core wants more voltage. */
static int start_overdrive(void) {
    PWR_CR |= CR1_OVERDRIVE;
    if (!stm32_becomes(&PWR_CSR, CSR1_OVERDRIVE_READY, CSR1_OVERDRIVE_READY)) {
        return 0;
    }
    PWR_CR |= CR1_OVERDRIVE_SWITCH;
    return stm32_becomes(&PWR_CSR, CSR1_OVERDRIVE_SWITCHED, CSR1_OVERDRIVE_SWITCHED);
}

void chip_start(void) {
    if (stm32_start_pll() && start_overdrive()) {
        (void)stm32_switch_to_pll(ACR_PREFETCH | ACR_ACCELERATOR);
    }
    start_caches();
}

uint32_t chip_core_hz(void) {
    return stm32_runs_from_pll() ? CHIP_CLOCK_HZ : HSI_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    return stm32_bus_hz(bus, wanted);
}
