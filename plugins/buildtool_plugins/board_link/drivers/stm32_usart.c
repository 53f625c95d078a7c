/* The USART of STM32F1, F2, F4 and L1: one data register, errors cleared by reading it. */
#include "chip.h"
#include "stm32_pins.h"
#include "wire.h"

#define STATE WIRE_REGISTER(0x00)
#define DATA WIRE_REGISTER(0x04)
#define DIVIDER WIRE_REGISTER(0x08)
#define CONTROL WIRE_REGISTER(0x0C)
#define STATE_RECEIVED (1U << 5)
#define STATE_SENDING_EMPTY (1U << 7)
#define CONTROL_RECEIVE (1U << 2)
#define CONTROL_SEND (1U << 3)
#define CONTROL_ENABLE (1U << 13)

void wire_start(void) {
    stm32_usart_pins();
    CONTROL = 0;
    DIVIDER = stm32_divider(chip_bus_hz(WIRE_BUS, WIRE_CLOCK_HZ));
    CONTROL = CONTROL_ENABLE | CONTROL_SEND | CONTROL_RECEIVE;
    (void)DATA;
}

int wire_get(void) {
    return (STATE & STATE_RECEIVED) != 0 ? (int)(DATA & 0xFF) : -1;
}

void wire_put(uint8_t byte) {
    while ((STATE & STATE_SENDING_EMPTY) == 0) {
    }
    DATA = byte;
}
