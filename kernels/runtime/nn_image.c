#include "nn_image.h"

#include <stddef.h>

#define SEALED_BYTES offsetof(nn_image_header, header_crc32)

/* The fields that tell one network's images from another's. */
static nn_status compare(const nn_image_header *header, const nn_image_kind *kind) {
    for (int i = 0; i < NN_IMAGE_DIGEST_BYTES; i++) {
        if (header->layout[i] != kind->layout[i]) {
            return NN_ERROR_IMAGE_LAYOUT;
        }
    }
    const uint32_t others = (header->payload_bytes ^ kind->payload_bytes) |
                            (header->inputs ^ kind->inputs) | (header->outputs ^ kind->outputs);
    return others == 0 ? NN_OK : NN_ERROR_IMAGE_LAYOUT;
}

nn_status nn_image_check_header(const nn_image_header *header, const nn_image_kind *kind) {
    if (header->magic != NN_IMAGE_MAGIC) {
        return NN_ERROR_IMAGE;
    }
    if (header->version != NN_IMAGE_VERSION || header->header_bytes != sizeof *header) {
        return NN_ERROR_IMAGE_VERSION;
    }
    const nn_status status = compare(header, kind);
    if (status != NN_OK) {
        return status;
    }
    if (nn_crc32(0, header, SEALED_BYTES, NULL) != header->header_crc32) {
        return NN_ERROR_IMAGE_CRC;
    }
    const uint32_t reserved = header->reserved[0] | header->reserved[1] | header->reserved[2];
    return reserved == 0 ? NN_OK : NN_ERROR_IMAGE_VERSION;
}

nn_status nn_image_check_with(const void *image, const nn_image_kind *kind, void *scratch,
                              size_t scratch_bytes) {
    const nn_image_header *header = image;
    if (image == NULL || ((uintptr_t)image & 15U) != 0) {
        return NN_ERROR_IMAGE;
    }
    const nn_status status = nn_image_check_header(header, kind);
    if (status != NN_OK) {
        return status;
    }
    const uint8_t *payload = (const uint8_t *)image + sizeof *header;
    const int enough = scratch_bytes >= NN_CRC32_SCRATCH_BYTES && ((uintptr_t)scratch & 3U) == 0;
    const uint32_t crc = nn_crc32(0, payload, kind->payload_bytes, enough ? scratch : NULL);
    return crc == header->payload_crc32 ? NN_OK : NN_ERROR_IMAGE_CRC;
}

nn_status nn_image_check(const void *image, const nn_image_kind *kind) {
    return nn_image_check_with(image, kind, NULL, 0);
}

static void bring(const nn_loader *loader, void *to, uint32_t from, uint32_t bytes) {
    loader->begin(loader->context, to, from, bytes);
    if (loader->wait != NULL) {
        loader->wait(loader->context);
    }
}

nn_status nn_image_check_loaded(const nn_loader *loader, void *memory, size_t memory_bytes,
                                const nn_image_kind *kind) {
    nn_image_header header; /* a small network's arena may be smaller */
    if (memory_bytes < 16) {
        return NN_ERROR_ARENA;
    }
    bring(loader, &header, 0, sizeof header);
    const nn_status status = nn_image_check_header(&header, kind);
    if (status != NN_OK) {
        return status;
    }
    /* What is brought lies behind the scratch, if there is room for both. */
    const int enough = memory_bytes >= 8U * NN_CRC32_SCRATCH_BYTES;
    uint8_t *const room = (uint8_t *)memory + (enough ? NN_CRC32_SCRATCH_BYTES : 0);
    const size_t most = (memory_bytes - (enough ? NN_CRC32_SCRATCH_BYTES : 0)) & ~(size_t)15U;
    uint32_t crc = 0;
    for (uint32_t done = 0; done < kind->payload_bytes;) {
        const uint32_t left = kind->payload_bytes - done;
        const uint32_t bytes = left < most ? left : (uint32_t)most;
        bring(loader, room, (uint32_t)sizeof header + done, bytes);
        crc = nn_crc32(crc, room, bytes, enough ? memory : NULL);
        done += bytes;
    }
    return crc == header.payload_crc32 ? NN_OK : NN_ERROR_IMAGE_CRC;
}
