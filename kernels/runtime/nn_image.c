#include "nn_image.h"

#include <stddef.h>

/* CRC-32 (IEEE 802.3, reflected) four bits at a time: 64 bytes of table instead of 1 KB. */
static const uint32_t crc_nibble[16] = {0x00000000U, 0x1DB71064U, 0x3B6E20C8U, 0x26D930ACU,
                                        0x76DC4190U, 0x6B6B51F4U, 0x4DB26158U, 0x5005713CU,
                                        0xEDB88320U, 0xF00F9344U, 0xD6D6A3E8U, 0xCB61B38CU,
                                        0x9B64C2B0U, 0x86D3D2D4U, 0xA00AE278U, 0xBDBDF21CU};

static uint32_t crc32_more(uint32_t crc, const uint8_t *data, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
        crc = (crc >> 4) ^ crc_nibble[crc & 15U];
    }
    return crc;
}

static nn_status check_header(const nn_image_header *header, const uint8_t *layout,
                              uint32_t payload_bytes) {
    if (header->magic != NN_IMAGE_MAGIC) {
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
    return header->payload_bytes == payload_bytes ? NN_OK : NN_ERROR_IMAGE_LAYOUT;
}

nn_status nn_image_check(const void *image, const uint8_t *layout, uint32_t payload_bytes) {
    const nn_image_header *header = image;
    if (image == NULL || ((uintptr_t)image & 15U) != 0) {
        return NN_ERROR_IMAGE;
    }
    const nn_status status = check_header(header, layout, payload_bytes);
    if (status != NN_OK) {
        return status;
    }
    const uint8_t *payload = (const uint8_t *)image + sizeof *header;
    const uint32_t crc = ~crc32_more(0xFFFFFFFFU, payload, payload_bytes);
    return crc == header->payload_crc32 ? NN_OK : NN_ERROR_IMAGE_CRC;
}

static void bring(const nn_loader *loader, void *to, uint32_t from, uint32_t bytes) {
    loader->begin(loader->context, to, from, bytes);
    if (loader->wait != NULL) {
        loader->wait(loader->context);
    }
}

nn_status nn_image_check_loaded(const nn_loader *loader, void *memory, size_t memory_bytes,
                                const uint8_t *layout, uint32_t payload_bytes) {
    if (memory_bytes < sizeof(nn_image_header)) {
        return NN_ERROR_ARENA;
    }
    const nn_image_header *header = memory;
    bring(loader, memory, 0, sizeof *header);
    const nn_status status = check_header(header, layout, payload_bytes);
    const uint32_t expected = header->payload_crc32;
    if (status != NN_OK) {
        return status;
    }
    uint32_t crc = 0xFFFFFFFFU;
    for (uint32_t done = 0; done < payload_bytes;) {
        const uint32_t left = payload_bytes - done;
        const uint32_t bytes = left < memory_bytes ? left : (uint32_t)memory_bytes;
        bring(loader, memory, (uint32_t)sizeof *header + done, bytes);
        crc = crc32_more(crc, memory, bytes);
        done += bytes;
    }
    return ~crc == expected ? NN_OK : NN_ERROR_IMAGE_CRC;
}
