/* STM32F4 after a reset: its clock from the PLL, and the flash's caches. Written after RM0402, and
 * not run: no board was at hand. */
#include "chip.h"

#include "stm32_pll.h"

#define ACR_PREFETCH (1U << 8)
#define ACR_INSTRUCTIONS (1U << 9)
#define ACR_DATA (1U << 10)

void chip_start(void) {
    if (stm32_start_pll()) {
        (void)stm32_switch_to_pll(ACR_PREFETCH | ACR_INSTRUCTIONS | ACR_DATA);
    }
}

uint32_t chip_core_hz(void) {
    return stm32_runs_from_pll() ? CHIP_CLOCK_HZ : HSI_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    return stm32_bus_hz(bus, wanted);
}
