/* See frames.h. */
#include "frames.h"

#include "wire.h"

#include <string.h>

#define HEAD 4U
#define CRC 4U
#define CONTENT (HEAD + FRAME_PAYLOAD + CRC)
#define HELLO 'H'

static uint8_t incoming[CONTENT + 1]; /* with COBS' own byte */
static uint8_t sent[CONTENT + 1];
static uint32_t sent_bytes;
static uint16_t session;
static uint8_t sequence;
static frame current;

uint32_t crc32_of(const uint8_t *data, uint32_t bytes) {
    static const uint32_t of_nibble[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
        0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
        0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
    };
    uint32_t crc = 0xFFFFFFFFU;
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ of_nibble[crc & 15];
        crc = crc >> 4 ^ of_nibble[crc & 15];
    }
    return ~crc;
}

/* ---- sending ----------------------------------------------------------------------------- */

static void send_again(void) {
    wire_put(0);
    for (uint32_t i = 0; i < sent_bytes; i++) {
        wire_put(sent[i]);
    }
    wire_put(0);
}

/* Fills `sent` behind COBS' own byte, and takes the zeros out: each is replaced by the distance to
 * the next one. */
static void send(uint8_t kind, uint8_t number, uint16_t of, const void *payload, uint32_t bytes) {
    uint8_t *const content = sent + 1;
    const uint32_t end = HEAD + bytes;
    content[0] = kind;
    content[1] = number;
    content[2] = (uint8_t)of;
    content[3] = (uint8_t)(of >> 8);
    memmove(content + HEAD, payload, bytes);
    const uint32_t crc = crc32_of(content, end);
    for (uint32_t i = 0; i < CRC; i++) {
        content[end + i] = (uint8_t)(crc >> 8 * i);
    }
    sent_bytes = end + CRC + 1;
    uint32_t run = 0; /* where the distance to the next zero goes */
    for (uint32_t i = 1; i < sent_bytes; i++) {
        if (sent[i] == 0) {
            sent[run] = (uint8_t)(i - run);
            run = i;
        }
    }
    sent[run] = (uint8_t)(sent_bytes - run);
    send_again();
}

void answer(uint8_t kind, const void *payload, uint32_t bytes) {
    send(kind, sequence, session, payload, bytes);
}

/* ---- receiving --------------------------------------------------------------------------- */

/* Puts the zeros back; 0 where the distances lead out of the frame. */
static int restore(uint8_t *data, uint32_t bytes) {
    uint32_t at = 0;
    while (at < bytes) {
        const uint32_t distance = data[at];
        data[at] = 0;
        if (distance == 0 || at + distance > bytes) {
            return 0;
        }
        at += distance;
    }
    return 1;
}

/* A frame from `bytes` of `incoming`; 0 where it is none. */
static int read_frame(uint32_t bytes) {
    if (bytes < HEAD + CRC + 1 || bytes > sizeof incoming || !restore(incoming, bytes)) {
        return 0;
    }
    const uint8_t *const content = incoming + 1;
    const uint32_t end = bytes - 1 - CRC;
    uint32_t crc = 0;
    for (uint32_t i = 0; i < CRC; i++) {
        crc |= (uint32_t)content[end + i] << 8 * i;
    }
    if (crc != crc32_of(content, end)) {
        return 0;
    }
    current.kind = content[0];
    current.sequence = content[1];
    current.session = (uint16_t)(content[2] | content[3] << 8);
    current.bytes = (uint16_t)(end - HEAD);
    current.payload = content + HEAD;
    return 1;
}

/* Waits for any frame. */
static void receive(void) {
    uint32_t bytes = 0;
    for (;;) {
        const int byte = wire_get();
        if (byte < 0) {
            continue;
        }
        if (byte != 0) {
            if (bytes < sizeof incoming) {
                incoming[bytes] = (uint8_t)byte;
            }
            bytes += bytes <= sizeof incoming; /* one too many: it is no frame */
        } else if (read_frame(bytes)) {
            return;
        } else {
            bytes = 0;
        }
    }
}

const frame *next_request(void) {
    for (;;) {
        receive();
        if (current.kind == HELLO && current.session != 0) {
            session = current.session;
            sequence = current.sequence;
            return &current;
        }
        if (current.session != session || session == 0) {
            const uint8_t no_session = 1;
            send('e', current.sequence, session, &no_session, 1);
        } else if (current.sequence == sequence) {
            send_again();
        } else {
            sequence = current.sequence;
            return &current;
        }
    }
}
