/* Weight images in slots of flash: which one to run, and how to put another one in.
 *
 * Slots lie one behind the other, each at the boundary of an erase block, each with room for one
 * image (nn_image.h). The newest whole image that this firmware was made for counts. An update goes
 * into another slot, and its header comes last: whenever the power is cut, the image that ran
 * before, or the new one, is found at the next start. docs/guides/weight-updates.md says what that
 * rests on.
 */
#ifndef NN_SLOTS_H
#define NN_SLOTS_H

#include "nn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NN_SLOTS_MOST 16U

/* Places are bytes from the first slot's start. Hooks return 0, or anything else where they failed.
 */
typedef struct {
    const void *base;       /* where the first slot is read in place; NULL: it is read by `read` */
    uint32_t slots;         /* how many: 2 to NN_SLOTS_MOST */
    uint32_t slot_bytes;    /* of each: a multiple of erase_bytes and of 16 */
    uint32_t erase_bytes;   /* what one erase empties: a multiple of program_bytes */
    uint32_t program_bytes; /* what one program writes: a power of two */

    int (*erase)(void *context, uint32_t at); /* the block at `at`: all its bytes become 0xFF */
    int (*program)(void *context, uint32_t at, const void *data); /* program_bytes bytes, once */
    int (*read)(void *context, uint32_t at, void *to, uint32_t bytes); /* where base is NULL */
    void *context;

    void *memory; /* contents are lost; aligned to 16 bytes, NN_SLOTS_MEMORY(program_bytes) of it */
    size_t memory_bytes; /* with NN_CRC32_SCRATCH_BYTES or more, checks are faster */
} nn_slots;

#define NN_SLOTS_HEAD(program_bytes)                                                               \
    ((program_bytes) > sizeof(nn_image_header) ? (program_bytes) : sizeof(nn_image_header))
#define NN_SLOTS_MEMORY(program_bytes) (NN_SLOTS_HEAD(program_bytes) + (program_bytes))

/* The newest slot by its header, of those that are not in the set `tried` (bit 0: slot 0), to which
 * it is added. The image's contents are not read, as <net>_init checks them. NN_ERROR_NO_SLOT where
 * there is none. */
nn_status nn_slots_newest(const nn_slots *slots, const nn_image_kind *kind, uint32_t *tried,
                          uint32_t *slot);

/* The newest slot whose image is whole: all of it is read. */
nn_status nn_slots_pick(const nn_slots *slots, const nn_image_kind *kind, uint32_t *slot);

/* An update under way. The members are nn_slots.c's own. */
typedef struct {
    const nn_slots *slots;
    const nn_image_kind *kind;
    uint32_t sequence, slot, taken, crc;
    nn_status status;
} nn_update;

/* Begins an update of the slot that is least worth keeping, never of the one that nn_slots_pick
 * gives. No flash is changed yet. */
nn_status nn_slots_begin(nn_update *update, const nn_slots *slots, const nn_image_kind *kind);

/* Takes the next bytes of an image, NET_weights.bin, in pieces of any size. Once the header is
 * whole it is checked, before any block is erased: the image of another network changes nothing. */
nn_status nn_slots_write(nn_update *update, const void *data, uint32_t bytes);

/* Compares the CRC of all that came, and writes the header, by which the image becomes the newest
 * one. Until this returns NN_OK, the image that was there before counts. */
nn_status nn_slots_end(nn_update *update);

#ifdef __cplusplus
}
#endif

#endif
