/* The UART of Arm's Cortex-M System Design Kit, as MPS2 and MPS3 boards have it. */
#include "wire.h"

#define DATA WIRE_REGISTER(0x00)
#define STATE WIRE_REGISTER(0x04)
#define CONTROL WIRE_REGISTER(0x08)
#define DIVIDER WIRE_REGISTER(0x10)
#define STATE_SENDING_FULL 1U
#define STATE_RECEIVED 2U
#define CONTROL_SEND 1U
#define CONTROL_RECEIVE 2U

void wire_start(void) {
    DIVIDER = WIRE_CLOCK_HZ / WIRE_BAUD;
    CONTROL = CONTROL_SEND | CONTROL_RECEIVE;
    (void)DATA; /* what came before is old; and QEMU looks for what comes when this is read */
}

int wire_get(void) {
    return (STATE & STATE_RECEIVED) != 0 ? (int)(DATA & 0xFF) : -1;
}

void wire_put(uint8_t byte) {
    while ((STATE & STATE_SENDING_FULL) != 0) {
    }
    DATA = byte;
}
