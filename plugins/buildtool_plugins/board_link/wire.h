/* What the test firmware of a board needs of the board: bytes in, bytes out.
 *
 * drivers/ has one file for each kind of serial port; a board's file names its driver, and gives it
 * these macros: WIRE_BASE (the port's registers), WIRE_CLOCK_HZ (the clock that feeds it),
 * WIRE_BAUD, and whatever more is in the board's settings.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>

/* Makes the port ready; called once, after the board's clock is set. */
void wire_start(void);
/* The next byte that has come; -1 where there is none. */
int wire_get(void);
/* Sends a byte; waits while there is no room for it. */
void wire_put(uint8_t byte);

#define WIRE_REGISTER(offset) (*(volatile uint32_t *)(WIRE_BASE + (offset)))

#endif
