/* The chip in QEMU: no clock to start; the core has the clock that the board's file says. */
#include "chip.h"

void chip_start(void) {
}

uint32_t chip_core_hz(void) {
    return CHIP_CLOCK_HZ;
}

uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus;
    return wanted;
}
