/* Puts frames.c on standard input and output: it answers every request with its payload turned
 * round, and every hello with what it is. */
#include "frames.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

void wire_start(void) {
}

int wire_get(void) {
    const int byte = getchar();
    if (byte == EOF) {
        fflush(stdout);
        exit(0);
    }
    return byte;
}

void wire_put(uint8_t byte) {
    putchar(byte);
}

int main(void) {
    for (;;) {
        uint8_t turned[FRAME_PAYLOAD];
        const frame *request = next_request();
        for (uint32_t i = 0; i < request->bytes; i++) {
            turned[i] = request->payload[request->bytes - 1 - i];
        }
        answer((uint8_t)(request->kind | 0x20), turned, request->bytes);
    }
}
