/* Frames over a stream of bytes that may lose, garble or add some: requests of a host, and the one
 * answer to each.
 *
 * On the wire a frame is a zero byte, the frame's content with its zeros taken out (COBS), and a
 * zero byte: whatever was lost before, the next zero begins anew. The content, little-endian:
 *
 *   uint8  kind       a letter; of requests a capital one
 *   uint8  sequence   a request's own; the answer has the same
 *   uint16 session    chosen by the host in its hello; 0: none since the reset
 *   payload           FRAME_PAYLOAD bytes at most
 *   uint32 crc        CRC-32 of all before, as zlib's
 *
 * The host asks again where no answer comes. A request with the sequence of the last one is the
 * same request: it is answered again, and nothing is done twice. What is no frame is passed over.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>

/* One run of COBS: 254 bytes with head and checksum. */
#define FRAME_PAYLOAD 240U

typedef struct {
    uint8_t kind, sequence;
    uint16_t session, bytes;
    const uint8_t *payload;
} frame;

/* Answers the request that is being served. */
void answer(uint8_t kind, const void *payload, uint32_t bytes);
/* Waits for the next request of the session, or a hello; the one before it is answered again
 * whenever it comes again. */
const frame *next_request(void);

uint32_t crc32_of(const uint8_t *data, uint32_t bytes);

#endif
