/* The weight image: everything that training changes, in one block of read-only memory.
 *
 * A header of 64 bytes, then the payload. The layout's digest names the order, place and packing
 * of every block in the payload; it does not depend on the values, nor on the arena's plan. So a
 * retrained image of the same topology can be flashed without new firmware, and any other is
 * refused.
 */
#ifndef NN_IMAGE_H
#define NN_IMAGE_H

#include <stdint.h>

#define NN_IMAGE_MAGIC 0x4957544EU /* "NTWI" in memory */
#define NN_IMAGE_VERSION 1U
#define NN_IMAGE_DIGEST_BYTES 16

typedef struct {
    uint32_t magic, version;
    uint32_t header_bytes;    /* 64: where the payload starts */
    uint32_t payload_bytes;   /* a multiple of 16 */
    uint32_t payload_crc32;   /* as zlib's */
    uint32_t inputs, outputs; /* the payload starts with an nn_quantization for each of them */
    uint32_t reserved;
    uint8_t layout[NN_IMAGE_DIGEST_BYTES];
    uint8_t padding[16];
} nn_image_header;

/* real = scale * (value - zero_point) */
typedef struct {
    float scale;
    int32_t zero_point;
} nn_quantization;

typedef enum {
    NN_OK = 0,
    NN_ERROR_ARENA,          /* null, too small, or not aligned to 16 bytes */
    NN_ERROR_IMAGE,          /* null, not aligned to 16 bytes, or not a weight image */
    NN_ERROR_IMAGE_VERSION,  /* an image of another format version */
    NN_ERROR_IMAGE_LAYOUT,   /* weights of another network, or packed for another core */
    NN_ERROR_IMAGE_CRC,      /* damaged */
    NN_ERROR_NOT_INITIALISED /* invoke before init, or after a failed init */
} nn_status;

/* Compares the header with what the firmware was built for, and the payload with its CRC. */
nn_status nn_image_check(const void *image, const uint8_t *layout, uint32_t payload_bytes);

#endif
