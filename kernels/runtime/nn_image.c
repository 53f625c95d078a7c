#include "nn_image.h"

#include <stddef.h>

/* CRC-32 (IEEE 802.3, reflected) four bits at a time: 64 bytes of table instead of 1 KB. */
static const uint32_t crc_nibble[16] = {0x00000000U, 0x1DB71064U, 0x3B6E20C8U, 0x26D930ACU,
                                        0x76DC4190U, 0x6B6B51F4U, 0x4DB26158U, 0x5005713CU,
                                        0xEDB88320U, 0xF00F9344U, 0xD6D6A3E8U, 0xCB61B38CU,
                                        0x9B64C2B0U, 0x86D3D2D4U, 0xA00AE278U, 0xBDBDF21CU};

static uint32_t crc32(const uint8_t *data, uint32_t bytes) {
    uint32_t crc = 0xFFFFFFFFU;
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
    }
    return ~crc;
}

nn_status nn_image_check(const void *image, const uint8_t *layout, uint32_t payload_bytes) {
    const nn_image_header *header = image;
    if (image == NULL || ((uintptr_t)image & 15U) != 0 || header->magic != NN_IMAGE_MAGIC) {
        return NN_ERROR_IMAGE;
    }
    if (header->version != NN_IMAGE_VERSION || header->header_bytes != sizeof *header) {
        return NN_ERROR_IMAGE_VERSION;
    }
    for (int i = 0; i < NN_IMAGE_DIGEST_BYTES; i++) {
        if (header->layout[i] != layout[i]) {
            return NN_ERROR_IMAGE_LAYOUT;
        }
    }
    if (header->payload_bytes != payload_bytes) {
        return NN_ERROR_IMAGE_LAYOUT;
    }
    const uint8_t *payload = (const uint8_t *)image + sizeof *header;
    return crc32(payload, payload_bytes) == header->payload_crc32 ? NN_OK : NN_ERROR_IMAGE_CRC;
}
