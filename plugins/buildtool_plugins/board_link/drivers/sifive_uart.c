/* UART 0 of SiFive's FE310, on pins 16 and 17. */
#include "wire.h"

#define SEND WIRE_REGISTER(0x00)
#define RECEIVE WIRE_REGISTER(0x04)
#define SEND_CONTROL WIRE_REGISTER(0x08)
#define RECEIVE_CONTROL WIRE_REGISTER(0x0C)
#define DIVIDER WIRE_REGISTER(0x18)
#define PINS (3U << 16)
#define PINS_ENABLE (*(volatile uint32_t *)0x10012038U) /* of the pins' own functions */
#define PINS_SELECT (*(volatile uint32_t *)0x1001203CU)
#define FULL_OR_EMPTY (1U << 31)

void wire_start(void) {
    PINS_SELECT &= ~PINS;
    PINS_ENABLE |= PINS;
    DIVIDER = WIRE_CLOCK_HZ / WIRE_BAUD - 1;
    SEND_CONTROL = 1;
    RECEIVE_CONTROL = 1;
}

int wire_get(void) {
    const uint32_t found = RECEIVE;
    return (found & FULL_OR_EMPTY) != 0 ? -1 : (int)(found & 0xFF);
}

void wire_put(uint8_t byte) {
    while ((SEND & FULL_OR_EMPTY) != 0) {
    }
    SEND = byte;
}
