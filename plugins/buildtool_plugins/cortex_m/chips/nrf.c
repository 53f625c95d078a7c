/* nRF51 and nRF52 after a reset: the crystal, and the cache of the flash (CHIP_ICACHE, nRF52). The
 * core's clock is fixed. Written after the product specifications, and not run on a board.
 */
#include "chip.h"

#define NRF_REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCK_HFCLKSTART NRF_REGISTER(0x40000000)
#define NVMC_ICACHECNF NRF_REGISTER(0x4001E540)

void chip_start(void) {
    CLOCK_HFCLKSTART = 1; /* the oscillator runs until the crystal is ready: nothing waits for it */
#ifdef CHIP_ICACHE
    NVMC_ICACHECNF = 1;
#endif
}

uint32_t chip_core_hz(void) {
    return CHIP_CLOCK_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus;
    return wanted;
}
