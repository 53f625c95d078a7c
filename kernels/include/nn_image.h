/* The weight image: everything that training changes, in one block of read-only memory.
 *
 * A header of 64 bytes, then the payload. The layout's digest names the order, place and packing
 * of every block in the payload; it does not depend on the values, nor on the arena's plan. So a
 * retrained image of the same topology can be flashed without new firmware, and any other is
 * refused. Every field of the header but the sequence has one right value, and is compared with it.
 * Several of them may lie in slots, of which the newest whole one counts: see nn_slots.h.
 */
#ifndef NN_IMAGE_H
#define NN_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weight images are little-endian"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A condition that the compiler checks, at file scope or in a function. */
#if defined(__cplusplus)
#define NN_STATIC_ASSERT(condition, text) static_assert(condition, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define NN_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#else
#define NN_STATIC_ASSERT(condition, text) extern char(*nn_assert(void))[(condition) ? 1 : -1]
#endif

/* A static array that can be a network's arena; the second one in a section of the linker script.
 */
#define NN_ARENA(name, bytes, alignment)                                                           \
    static int8_t name[bytes] __attribute__((aligned(alignment)))
#define NN_ARENA_IN(name, bytes, alignment, place)                                                 \
    static int8_t name[bytes] __attribute__((section(place), aligned(alignment)))

#define NN_IMAGE_MAGIC 0x4957544EU /* "NTWI" in memory */
#define NN_IMAGE_VERSION 2U
#define NN_IMAGE_DIGEST_BYTES 16

typedef struct {
    uint32_t magic, version;
    uint32_t header_bytes;    /* 64: where the payload starts */
    uint32_t payload_bytes;   /* a multiple of 16 */
    uint32_t payload_crc32;   /* as zlib's */
    uint32_t inputs, outputs; /* the payload starts with an nn_quantization for each of them */
    uint32_t sequence;        /* 0 as built; an update of a slot counts up (see nn_slots.h) */
    uint8_t layout[NN_IMAGE_DIGEST_BYTES];
    uint32_t reserved[3];  /* 0; an image where they are not is of another version */
    uint32_t header_crc32; /* of the 60 bytes before it */
} nn_image_header;

NN_STATIC_ASSERT(sizeof(nn_image_header) == 64, "the header has no gaps");

/* The images that a firmware can run: what their headers have to say. <NAME>_IMAGE_KIND is a
 * network's. */
typedef struct {
    uint8_t layout[NN_IMAGE_DIGEST_BYTES];
    uint32_t payload_bytes, inputs, outputs;
} nn_image_kind;

/* real = scale * (value - zero_point) */
typedef struct {
    float scale;
    int32_t zero_point;
} nn_quantization;

typedef enum {
    NN_OK = 0,
    NN_ERROR_ARENA,           /* null, too small, or not aligned as <NAME>_ARENA_ALIGNMENT says */
    NN_ERROR_IMAGE,           /* null, not aligned to 16 bytes, or not a weight image */
    NN_ERROR_IMAGE_VERSION,   /* an image of another format version */
    NN_ERROR_IMAGE_LAYOUT,    /* weights of another network, or packed for another core */
    NN_ERROR_IMAGE_CRC,       /* damaged */
    NN_ERROR_NOT_INITIALISED, /* invoke before init, or after a failed init */
    NN_ERROR_NO_ROW_SOURCE,   /* the image comes row by row, and nothing delivers it */
    NN_ERROR_NO_SLOT,         /* no slot has an image that this firmware can run */
    NN_ERROR_FLASH,           /* a hook failed, or flash does not hold what was written to it */
    NN_ERROR_SLOTS,           /* slots that cannot be: see nn_slots.h */
    NN_ERROR_BUSY,            /* another call of the same network is under way; nothing was done */
    NN_ERROR_ROWS,            /* no whole number of hops, or no rows at all; nothing was done */
    NN_ERROR_GUARD,           /* a guard word beside the arena was overwritten */
    NN_ERROR_GOLDEN,          /* the self-test's output is another one */
    NN_ERROR_GOLDEN_WEIGHTS,  /* the self-test was made for other weights; nothing was run */
    NN_ERROR_LOWEST = -2147483647 - 1 /* codes below 0 are the application's: see nn_row_source */
} nn_status;

/* What a network is: the digests of its topology and its plan (hexadecimal), and who wrote its
 * code. Weights of the topology differ by the payload_crc32 of their header. */
typedef struct {
    const char *name, *network, *plan, *buildtool;
} nn_version;

/* Delivers an image row by row: writes row `row` to `data`, and returns 0. Anything else ends the
 * invoke, which returns it: a code below 0 cannot be taken for one of the network's own. */
typedef int nn_row_source(void *context, int32_t row, int8_t *data);

/* CRC-32 (IEEE 802.3, as zlib's): of `bytes` bytes at `data`, behind those whose CRC is `crc` (0:
 * none).
 *
 * `scratch` (NULL: none) is memory of NN_CRC32_SCRATCH_BYTES and the alignment 4, whose contents
 * are lost: with it, long data costs about a third of the instructions. The function is weak: one
 * of this name in the application, which uses the chip's CRC unit, takes its place. */
#define NN_CRC32_SCRATCH_BYTES 1200U
uint32_t nn_crc32(uint32_t crc, const void *data, uint32_t bytes, void *scratch);

/* Compares the header with what the firmware was built for, and the payload with its CRC. */
nn_status nn_image_check(const void *image, const nn_image_kind *kind);

/* The same, faster where there are NN_CRC32_SCRATCH_BYTES or more of `scratch`, such as the arena.
 */
nn_status nn_image_check_with(const void *image, const nn_image_kind *kind, void *scratch,
                              size_t scratch_bytes);

/* Compares a header, wherever it came from, with what the firmware was built for. */
nn_status nn_image_check_header(const nn_image_header *header, const nn_image_kind *kind);

/* Brings parts of a weight image that lies where it cannot be read in place: `begin` starts to copy
 * `bytes` bytes from byte `from` of the image to `to`, `wait` returns when all that was begun is
 * there. Several copies may be under way; they end in the order in which they were begun. */
typedef struct {
    void (*begin)(void *context, void *to, uint32_t from, uint32_t bytes);
    void (*wait)(void *context);
    void *context;
} nn_loader;

/* The same for such an image, which is brought part by part into `memory` (aligned to 16 bytes, 16
 * of them at least), whose contents are lost. */
nn_status nn_image_check_loaded(const nn_loader *loader, void *memory, size_t memory_bytes,
                                const nn_image_kind *kind);

#ifdef __cplusplus
}
#endif

#endif
