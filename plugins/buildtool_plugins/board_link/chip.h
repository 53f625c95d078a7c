/* What a board's chip needs before anything is measured on it: its clock, wait states, caches.
 *
 * chips/ of the family has the code; a board's file names its chip, and gives the macros that the
 * chip wants. Without one (as in emulators) the clock is as it is, and nobody knows which.
 */
#ifndef CHIP_H
#define CHIP_H

#include <stdint.h>

#ifdef CHIP_START
/* Called once, when memory is ready. */
void chip_start(void);
/* What the core and its peripheral buses 1 and 2 really run at: less than was asked for where the
 * crystal did not start. `wanted`: what the board's file says. */
uint32_t chip_core_hz(void);
uint32_t chip_bus_hz(int bus, uint32_t wanted);
#else
static inline void chip_start(void) {
}

static inline uint32_t chip_core_hz(void) {
    return 0; /* not known */
}

static inline uint32_t chip_bus_hz(int bus, uint32_t wanted) {
    (void)bus;
    return wanted;
}
#endif

#endif
