/* A 16550 with registers of one byte, as QEMU's `virt` machine has it. */
#include "wire.h"

#define BYTE(offset) (*(volatile uint8_t *)(WIRE_BASE + (offset)))
#define DATA BYTE(0)       /* and the divisor's low byte */
#define INTERRUPTS BYTE(1) /* and its high byte */
#define FIFO BYTE(2)
#define LINE BYTE(3)
#define LINE_STATE BYTE(5)
#define LINE_8N1 3
#define LINE_DIVISOR 0x80
#define STATE_RECEIVED 1
#define STATE_SENDING_EMPTY 0x20

void wire_start(void) {
    const uint32_t divisor = (WIRE_CLOCK_HZ + 8U * WIRE_BAUD) / (16U * WIRE_BAUD);
    INTERRUPTS = 0;
    LINE = LINE_DIVISOR;
    DATA = (uint8_t)divisor;
    INTERRUPTS = (uint8_t)(divisor >> 8);
    LINE = LINE_8N1;
    FIFO = 7; /* on, and both emptied */
    (void)DATA;
}

int wire_get(void) {
    return (LINE_STATE & STATE_RECEIVED) != 0 ? DATA : -1;
}

void wire_put(uint8_t byte) {
    while ((LINE_STATE & STATE_SENDING_EMPTY) == 0) {
    }
    DATA = byte;
}
