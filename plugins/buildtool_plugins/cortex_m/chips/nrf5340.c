/* The application core of nRF5340 after a reset: 128 MHz, the crystal, and the cache of the flash,
 * by the secure addresses. Written after the product specification (nRF5340 PS), and not run: no
 * board was at hand.
 */
#include "chip.h"

#define NRF_REGISTER(address) (*(volatile uint32_t *)(address))
#define CACHE_ENABLE NRF_REGISTER(0x50001500)
#define CLOCK_HFCLKSTART NRF_REGISTER(0x50005000)
#define CLOCK_HFCLKCTRL NRF_REGISTER(0x50005558)

void chip_start(void) {
    CLOCK_HFCLKCTRL = 0; /* not divided */
    CLOCK_HFCLKSTART = 1;
    CACHE_ENABLE = 1;
}

uint32_t chip_core_hz(void) {
    return CLOCK_HFCLKCTRL == 0 ? CHIP_CLOCK_HZ : CHIP_CLOCK_HZ / 2;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus;
    return wanted;
}
