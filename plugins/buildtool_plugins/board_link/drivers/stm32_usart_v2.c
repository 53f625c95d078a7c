/* The USART of STM32F0, F3, F7, G4, H7, L4 and later: data registers of its own for each direction.
 */
#include "chip.h"
#include "stm32_pins.h"
#include "wire.h"

#define CONTROL1 WIRE_REGISTER(0x00)
#define CONTROL3 WIRE_REGISTER(0x08)
#define DIVIDER WIRE_REGISTER(0x0C)
#define STATE WIRE_REGISTER(0x1C)
#define RECEIVED WIRE_REGISTER(0x24)
#define SENT WIRE_REGISTER(0x28)
#define STATE_RECEIVED (1U << 5)
#define STATE_SENDING_EMPTY (1U << 7)
#define CONTROL1_ENABLE 1U
#define CONTROL1_RECEIVE (1U << 2)
#define CONTROL1_SEND (1U << 3)
#define CONTROL3_NO_OVERRUN                                                                        \
    (1U << 12) /* a byte that came too late is written over, without an error */

void wire_start(void) {
    stm32_usart_pins();
    CONTROL1 = 0;
    CONTROL3 = CONTROL3_NO_OVERRUN;
    DIVIDER = stm32_divider(chip_bus_hz(WIRE_BUS, WIRE_CLOCK_HZ));
    CONTROL1 = CONTROL1_ENABLE | CONTROL1_SEND | CONTROL1_RECEIVE;
}

int wire_get(void) {
    return (STATE & STATE_RECEIVED) != 0 ? (int)(RECEIVED & 0xFF) : -1;
}

void wire_put(uint8_t byte) {
    while ((STATE & STATE_SENDING_EMPTY) == 0) {
    }
    SENT = byte;
}
