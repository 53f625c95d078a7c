#include "nn_slots.h"

#define HEADER_BYTES ((uint32_t)sizeof(nn_image_header))
#define LONGEST_READ 32U /* bytes on the stack */

/* ---- flash ------------------------------------------------------------------------------- */

static int are_possible(const nn_slots *slots) {
    const uint32_t program = slots->program_bytes, erase = slots->erase_bytes;
    if (slots->slots < 2 || slots->slots > NN_SLOTS_MOST || program == 0 || erase == 0) {
        return 0;
    }
    if ((program & (program - 1)) != 0 || erase % program != 0 || slots->slot_bytes % erase != 0) {
        return 0;
    }
    if (slots->slot_bytes % 16 != 0 || slots->slot_bytes < HEADER_BYTES ||
        slots->slot_bytes > UINT32_MAX / slots->slots) {
        return 0;
    }
    if (slots->base == NULL ? slots->read == NULL : ((uintptr_t)slots->base & 15U) != 0) {
        return 0;
    }
    return slots->memory != NULL && ((uintptr_t)slots->memory & 15U) == 0 &&
           program <= slots->memory_bytes &&
           slots->memory_bytes - program >= NN_SLOTS_HEAD(program);
}

static int read_flash(const nn_slots *slots, uint32_t at, void *to, uint32_t bytes) {
    if (slots->base == NULL) {
        return slots->read(slots->context, at, to, bytes);
    }
    const uint8_t *from = (const uint8_t *)slots->base + at;
    for (uint32_t i = 0; i < bytes; i++) {
        ((uint8_t *)to)[i] = from[i];
    }
    return 0;
}

/* Writes program_bytes bytes, and looks whether they are there. */
static nn_status program(const nn_slots *slots, uint32_t at, const uint8_t *data) {
    if (slots->program(slots->context, at, data) != 0) {
        return NN_ERROR_FLASH;
    }
    for (uint32_t done = 0; done < slots->program_bytes;) {
        const uint32_t left = slots->program_bytes - done;
        const uint32_t bytes = left < LONGEST_READ ? left : LONGEST_READ;
        uint8_t there[LONGEST_READ];
        if (read_flash(slots, at + done, there, bytes) != 0) {
            return NN_ERROR_FLASH;
        }
        for (uint32_t i = 0; i < bytes; i++, done++) {
            if (there[i] != data[done]) {
                return NN_ERROR_FLASH;
            }
        }
    }
    return NN_OK;
}

/* ---- which slot -------------------------------------------------------------------------------
 */

typedef struct {
    const nn_slots *slots;
    uint32_t start;
    int failed;
} one_slot;

static void begin_reading(void *context, void *to, uint32_t from, uint32_t bytes) {
    one_slot *slot = context;
    if (read_flash(slot->slots, slot->start + from, to, bytes) != 0) {
        slot->failed = 1;
    }
}

static int is_whole(const nn_slots *slots, const nn_image_kind *kind, uint32_t slot) {
    one_slot one = {slots, slot * slots->slot_bytes, 0};
    if (slots->base != NULL) {
        return nn_image_check_with((const uint8_t *)slots->base + one.start, kind, slots->memory,
                                   slots->memory_bytes) == NN_OK;
    }
    const nn_loader loader = {begin_reading, NULL, &one};
    const nn_status status =
        nn_image_check_loaded(&loader, slots->memory, slots->memory_bytes, kind);
    return status == NN_OK && !one.failed;
}

/* Of the slots in `left`, the newest by its header, and its number; slots->slots: there is none. */
static uint32_t newest(const nn_slots *slots, const nn_image_kind *kind, uint32_t left,
                       uint32_t *sequence) {
    uint32_t found = slots->slots;
    for (uint32_t slot = 0; slot < slots->slots; slot++) {
        nn_image_header header;
        if ((left >> slot & 1U) == 0 ||
            read_flash(slots, slot * slots->slot_bytes, &header, HEADER_BYTES) != 0 ||
            nn_image_check_header(&header, kind) != NN_OK) {
            continue;
        }
        /* Numbers go round: the newer one is less than half of all numbers further on. */
        if (found == slots->slots || header.sequence - *sequence - 1U < 0x7FFFFFFFU) {
            found = slot;
            *sequence = header.sequence;
        }
    }
    return found;
}

static int has_room(const nn_slots *slots, const nn_image_kind *kind) {
    return kind->payload_bytes <= slots->slot_bytes - HEADER_BYTES;
}

nn_status nn_slots_newest(const nn_slots *slots, const nn_image_kind *kind, uint32_t *tried,
                          uint32_t *slot) {
    uint32_t sequence = 0;
    if (!are_possible(slots) || !has_room(slots, kind)) {
        return NN_ERROR_SLOTS;
    }
    const uint32_t found = newest(slots, kind, ~*tried, &sequence);
    if (found == slots->slots) {
        return NN_ERROR_NO_SLOT;
    }
    *tried |= 1U << found;
    *slot = found;
    return NN_OK;
}

/* The newest whole slot, and its number; the slots that are newer and not whole are taken out of
 * `left`. */
static uint32_t pick(const nn_slots *slots, const nn_image_kind *kind, uint32_t *left,
                     uint32_t *sequence) {
    for (;;) {
        const uint32_t found = newest(slots, kind, *left, sequence);
        if (found == slots->slots || is_whole(slots, kind, found)) {
            return found;
        }
        *left &= ~(1U << found);
    }
}

nn_status nn_slots_pick(const nn_slots *slots, const nn_image_kind *kind, uint32_t *slot) {
    uint32_t left = ~0U, sequence = 0;
    if (!are_possible(slots) || !has_room(slots, kind)) {
        return NN_ERROR_SLOTS;
    }
    const uint32_t found = pick(slots, kind, &left, &sequence);
    if (found == slots->slots) {
        return NN_ERROR_NO_SLOT;
    }
    *slot = found;
    return NN_OK;
}

/* ---- an update ------------------------------------------------------------------------------- */

static uint8_t *head_of(const nn_update *update) {
    return update->slots->memory;
}

static uint32_t head_bytes(const nn_update *update) {
    return NN_SLOTS_HEAD(update->slots->program_bytes);
}

/* The slot to write: one without a header that counts, or else the one that is left when all newer
 * ones are taken away. */
static uint32_t least_worth(const nn_slots *slots, const nn_image_kind *kind, uint32_t kept) {
    uint32_t last = kept, sequence = 0;
    uint32_t left = kept < slots->slots ? ~(1U << kept) : ~0U;
    for (;;) {
        const uint32_t found = newest(slots, kind, left, &sequence);
        if (found == slots->slots) {
            break;
        }
        last = found;
        left &= ~(1U << found);
    }
    for (uint32_t slot = 0; slot < slots->slots; slot++) {
        if ((left >> slot & 1U) != 0) {
            return slot;
        }
    }
    return last;
}

nn_status nn_slots_begin(nn_update *update, const nn_slots *slots, const nn_image_kind *kind) {
    uint32_t left = ~0U, sequence = 0;
    const nn_update none = {NULL, NULL, 0, 0, 0, 0, NN_ERROR_SLOTS};
    *update = none;
    if (!are_possible(slots) || !has_room(slots, kind) || slots->erase == NULL ||
        slots->program == NULL) {
        return update->status;
    }
    const uint32_t kept = pick(slots, kind, &left, &sequence);
    update->slots = slots;
    update->kind = kind;
    update->sequence = kept < slots->slots ? sequence + 1 : 1;
    /* A header without its image is worth nothing. */
    for (uint32_t slot = 0; slot < slots->slots; slot++) {
        if ((left >> slot & 1U) == 0) {
            update->slot = slot;
            return update->status = NN_OK;
        }
    }
    update->slot = least_worth(slots, kind, kept);
    return update->status = NN_OK;
}

/* The header is whole: if it is one of ours, the slot is emptied, its first block first. */
static nn_status make_room(const nn_update *update) {
    const nn_slots *slots = update->slots;
    const uint32_t start = update->slot * slots->slot_bytes;
    const uint32_t end = HEADER_BYTES + update->kind->payload_bytes;
    const nn_image_header *header = (const nn_image_header *)slots->memory;
    const nn_status status = nn_image_check_header(header, update->kind);
    if (status != NN_OK) {
        return status;
    }
    for (uint32_t at = 0; at < end; at += slots->erase_bytes) {
        if (slots->erase(slots->context, start + at) != 0) {
            return NN_ERROR_FLASH;
        }
    }
    return NN_OK;
}

/* One byte of the image: into the head, which is kept back, or into a page, which is written when
 * it is full or `last`. */
static nn_status take(nn_update *update, uint8_t byte, int last) {
    const nn_slots *slots = update->slots;
    const uint32_t head = head_bytes(update), page_bytes = slots->program_bytes;
    const uint32_t at = update->taken++;
    if (at < head) {
        head_of(update)[at] = byte;
        return at + 1 == HEADER_BYTES ? make_room(update) : NN_OK;
    }
    uint8_t *page = head_of(update) + head;
    const uint32_t in_page = at & (page_bytes - 1);
    page[in_page] = byte;
    if (in_page + 1 < page_bytes && !last) {
        return NN_OK;
    }
    for (uint32_t i = in_page + 1; i < page_bytes; i++) {
        page[i] = 0xFF;
    }
    return program(slots, update->slot * slots->slot_bytes + (at - in_page), page);
}

nn_status nn_slots_write(nn_update *update, const void *data, uint32_t bytes) {
    const uint8_t *from = data;
    const uint32_t whole = HEADER_BYTES + update->kind->payload_bytes;
    if (update->status == NN_OK && bytes > whole - update->taken) {
        update->status = NN_ERROR_IMAGE;
    }
    if (update->status == NN_OK) {
        const uint32_t left = update->taken < HEADER_BYTES ? HEADER_BYTES - update->taken : 0;
        const uint32_t skipped = left < bytes ? left : bytes;
        update->crc = nn_crc32(update->crc, from + skipped, bytes - skipped, NULL);
    }
    for (uint32_t i = 0; i < bytes && update->status == NN_OK; i++) {
        update->status = take(update, from[i], update->taken + 1 == whole);
    }
    return update->status;
}

nn_status nn_slots_end(nn_update *update) {
    const nn_slots *slots = update->slots;
    if (update->status != NN_OK) {
        return update->status;
    }
    const uint32_t whole = HEADER_BYTES + update->kind->payload_bytes, head = head_bytes(update);
    uint8_t *first = head_of(update);
    nn_image_header *header = slots->memory;
    if (update->taken != whole) {
        return update->status = NN_ERROR_IMAGE;
    }
    if (update->crc != header->payload_crc32) {
        return update->status = NN_ERROR_IMAGE_CRC;
    }
    for (uint32_t i = whole; i < head; i++) {
        first[i] = 0xFF;
    }
    header->sequence = update->sequence;
    header->header_crc32 = nn_crc32(0, header, offsetof(nn_image_header, header_crc32), NULL);
    /* The last unit is the first one, with the magic number. */
    for (uint32_t at = head; at > 0 && update->status == NN_OK;) {
        at -= slots->program_bytes;
        update->status = program(slots, update->slot * slots->slot_bytes + at, first + at);
    }
    const nn_status status = update->status;
    update->status = NN_ERROR_NOT_INITIALISED; /* an update ends once */
    return status;
}
