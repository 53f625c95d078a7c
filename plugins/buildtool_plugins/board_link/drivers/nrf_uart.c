/* The UART of nRF51 and nRF52 without DMA. Settings of a board: the pins WIRE_TX and WIRE_RX, as
 * 32 * port + pin.
 */
#include "wire.h"

#define START_RECEIVING WIRE_REGISTER(0x000)
#define START_SENDING WIRE_REGISTER(0x008)
#define RECEIVED WIRE_REGISTER(0x108)
#define SENT WIRE_REGISTER(0x11C)
#define ENABLE WIRE_REGISTER(0x500)
#define SEND_PIN WIRE_REGISTER(0x50C)
#define RECEIVE_PIN WIRE_REGISTER(0x514)
#define RECEIVED_BYTE WIRE_REGISTER(0x518)
#define BYTE_TO_SEND WIRE_REGISTER(0x51C)
#define RATE WIRE_REGISTER(0x524)

#if WIRE_BAUD != 115200 && WIRE_BAUD != 230400 && WIRE_BAUD != 460800 && WIRE_BAUD != 921600 &&    \
    WIRE_BAUD != 1000000
#error "the port has no such baud rate: 115200, 230400, 460800, 921600 or 1000000"
#endif

static int is_sending;

void wire_start(void) {
    SEND_PIN = WIRE_TX;
    RECEIVE_PIN = WIRE_RX;
    /* in 2^32 / 16 MHz, in steps of 4096; those of 115200 and more that the manual prints */
    RATE = WIRE_BAUD == 115200   ? 0x01D7E000U
           : WIRE_BAUD == 230400 ? 0x03AFB000U
           : WIRE_BAUD == 460800 ? 0x075F7000U
           : WIRE_BAUD == 921600 ? 0x0EBED000U
                                 : 0x10000000U;
    ENABLE = 4;
    RECEIVED = 0;
    START_RECEIVING = 1;
    START_SENDING = 1;
}

int wire_get(void) {
    if (RECEIVED == 0) {
        return -1;
    }
    RECEIVED = 0;
    return (int)(RECEIVED_BYTE & 0xFF);
}

void wire_put(uint8_t byte) {
    if (is_sending) {
        while (SENT == 0) {
        }
    }
    SENT = 0;
    is_sending = 1;
    BYTE_TO_SEND = byte;
}
