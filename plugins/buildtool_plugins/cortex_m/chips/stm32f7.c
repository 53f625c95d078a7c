/* STM32F7 after a reset: its clock from the PLL with over-drive, the accelerator of its flash, and
 * the core's caches. Written after RM0385 and RM0410, and not run: no board was at hand. */
#include "chip.h"

#include "cortex_m7_caches.h"
#include "stm32_pll.h"

#define ACR_PREFETCH (1U << 8)
#define ACR_ACCELERATOR (1U << 9)
#define CR1_OVERDRIVE (1U << 16)
#define CR1_OVERDRIVE_SWITCH (1U << 17)
#define CSR1_OVERDRIVE_READY (1U << 16)
#define CSR1_OVERDRIVE_SWITCHED (1U << 17)

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
    cortex_m7_start_caches();
}

uint32_t chip_core_hz(void) {
    return stm32_runs_from_pll() ? CHIP_CLOCK_HZ : HSI_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    return stm32_bus_hz(bus, wanted);
}
