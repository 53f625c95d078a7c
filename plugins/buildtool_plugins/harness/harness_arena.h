/* The arena of the test firmware, and how the network is begun on it; in the one file that includes
 * this. Which memory is written to is found out by painting it before. */
#ifndef HARNESS_ARENA_H
#define HARNESS_ARENA_H

#include "harness_net.h"

#include <stdint.h>
#include <string.h>

#define GUARD_BYTES 64U
#define GUARD_PAINT 0xC3

/* Of the network's own guard words, within the arena; they are not painted. */
#ifndef HARNESS_GUARD_BYTES
#define HARNESS_GUARD_BYTES 0U
#endif

/* Starts with .bss, so that no compiler gives it contents; the linker scripts know it. */
static uint8_t block[GUARD_BYTES + HARNESS_ARENA_BYTES + GUARD_BYTES]
    __attribute__((section(".bss.nn_arena"), aligned(64)));
static uint8_t *const arena = block + GUARD_BYTES;
static uint8_t *const arena_end = block + GUARD_BYTES + HARNESS_ARENA_BYTES;

#ifdef HARNESS_SECOND_ARENA_BYTES
static uint8_t second_block[GUARD_BYTES + HARNESS_SECOND_ARENA_BYTES + GUARD_BYTES]
    __attribute__((section(".bss.nn_second_arena"), aligned(64)));
static uint8_t *const second_arena = second_block + GUARD_BYTES;
static uint8_t *const second_end = second_block + GUARD_BYTES + HARNESS_SECOND_ARENA_BYTES;
#define ALL_ARENA_BYTES (HARNESS_ARENA_BYTES + HARNESS_SECOND_ARENA_BYTES)
#else
#define ALL_ARENA_BYTES HARNESS_ARENA_BYTES
#endif

static int status;

static void paint_arenas(uint8_t paint) {
    memset(arena + HARNESS_GUARD_BYTES, paint, HARNESS_ARENA_BYTES - 2U * HARNESS_GUARD_BYTES);
#ifdef HARNESS_SECOND_ARENA_BYTES
    memset(second_arena + HARNESS_GUARD_BYTES, paint,
           HARNESS_SECOND_ARENA_BYTES - 2U * HARNESS_GUARD_BYTES);
#endif
}

#ifdef HARNESS_SET_LOADER
/* Constants come as late as they may in one set, when they are waited for, and as early as they may
 * in the next: whatever relies on either is found out. */
#define MOST_COPIES 256U

typedef struct {
    void *to;
    uint32_t from, bytes;
} copy;

static copy copies[MOST_COPIES];
static uint32_t begun;
static int at_once;

__attribute__((weak)) void io_load(void *to, const void *from, uint32_t bytes) {
    memcpy(to, from, bytes);
}

static void do_copy(const copy *one) {
    io_load(one->to, HARNESS_WEIGHTS + one->from, one->bytes);
}

static void begin_copy(void *context, void *to, uint32_t from, uint32_t bytes) {
    (void)context;
    const copy one = {to, from, bytes};
    if (at_once || begun == MOST_COPIES) {
        do_copy(&one);
    } else {
        copies[begun++] = one;
    }
}

static void wait_for_copies(void *context) {
    (void)context;
    for (uint32_t i = 0; i < begun; i++) {
        do_copy(&copies[i]);
    }
    begun = 0;
}

static void init(void) {
    const nn_loader loader = {begin_copy, wait_for_copies, NULL};
    HARNESS_SET_LOADER(loader);
    status = (int)HARNESS_INIT(arena, HARNESS_ARENA_BYTES, NULL);
}
#else
static void init(void) {
    status = (int)HARNESS_INIT(arena, HARNESS_ARENA_BYTES, HARNESS_WEIGHTS);
}
#endif

static void invoke(void) {
    status = (int)HARNESS_INVOKE();
}

/* What a set is painted with: a byte that is written with what was there already shows in one of
 * two sets. */
static uint8_t paint_of(uint32_t set) {
    return set % 2 == 0 ? 0xA5 : 0x5A;
}

static uint32_t end_in_arena(const void *data, uint32_t bytes) {
    const uint8_t *first = (const uint8_t *)data;
    if (first < arena || first >= arena_end) {
        return 0; /* a constant output, or a caller's buffer */
    }
    return (uint32_t)(first - arena) + bytes - HARNESS_GUARD_BYTES;
}

/* End of the highest byte that is not as painted, or that belongs to an input or output. */
static uint32_t high_water(uint8_t paint) {
    uint32_t used = HARNESS_ARENA_BYTES - 2U * HARNESS_GUARD_BYTES;
    while (used > 0 && arena[HARNESS_GUARD_BYTES + used - 1] == paint) {
        used--;
    }
#ifdef HARNESS_INPUT
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        const uint32_t end = end_in_arena(HARNESS_INPUT(i), HARNESS_INPUT_BYTES(i));
        used = end > used ? end : used;
    }
#endif
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        const uint32_t end = end_in_arena(HARNESS_OUTPUT(i), HARNESS_OUTPUT_BYTES(i));
        used = end > used ? end : used;
    }
    return used;
}

#ifdef HARNESS_SECOND_ARENA_BYTES
static void paint_second_guards(void) {
    memset(second_block, GUARD_PAINT, GUARD_BYTES);
    memset(second_end, GUARD_PAINT, GUARD_BYTES);
}

static int second_guards_intact(void) {
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (second_block[i] != GUARD_PAINT || second_end[i] != GUARD_PAINT) {
            return 0;
        }
    }
    return 1;
}

static uint32_t end_in_second(const void *data, uint32_t bytes) {
    const uint8_t *first = (const uint8_t *)data;
    return first < second_arena || first >= second_end
               ? 0
               : (uint32_t)(first - second_arena) + bytes - HARNESS_GUARD_BYTES;
}

/* The same as high_water, of the second arena. */
static uint32_t second_high_water(uint8_t paint) {
    uint32_t used = HARNESS_SECOND_ARENA_BYTES - 2U * HARNESS_GUARD_BYTES;
    while (used > 0 && second_arena[HARNESS_GUARD_BYTES + used - 1] == paint) {
        used--;
    }
#ifdef HARNESS_INPUT
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        const uint32_t end = end_in_second(HARNESS_INPUT(i), HARNESS_INPUT_BYTES(i));
        used = end > used ? end : used;
    }
#endif
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        const uint32_t end = end_in_second(HARNESS_OUTPUT(i), HARNESS_OUTPUT_BYTES(i));
        used = end > used ? end : used;
    }
    return used;
}
#endif

#endif
