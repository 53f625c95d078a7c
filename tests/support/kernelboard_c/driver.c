/* Runs kernel calls that a file describes: one firmware image, hundreds of calls, one emulator run.
 *
 * cases.bin, all 32-bit little-endian words, is a row of cases:
 *   symbol, marker, repeats, arguments, relocations, memory bytes (a multiple of 16)
 *   {kind, value} for each argument: kind 0 the value itself, 1 the address of memory + value
 *   the offsets of words in memory to which the address of memory is added
 *   memory
 * results.bin gets for each case the word that the function returned, then memory (whose relocated
 * words are as they were). The call is bracketed by the markers of operator `marker`, 0 to 63.
 */
#include "harness_io.h"
#include "nn_profile.h"

#include <stddef.h>

#define MEMORY_BYTES (3U << 20)
#define MAX_ARGUMENTS 10
#define MAX_RELOCATIONS 64

typedef int32_t (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                            uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Of the functions under test, in the order that Python has them: from symbols.c. */
extern const function symbols[];
extern const uint32_t symbol_count;

typedef struct {
    uint32_t symbol, marker, repeats, arguments, relocations, bytes;
} header;

static uint8_t memory[MEMORY_BYTES] __attribute__((section(".bss.nn_arena"), aligned(64)));
static uintptr_t argument[MAX_ARGUMENTS];

__attribute__((noreturn)) static void fail(const char *what) {
    io_print("driver: ");
    io_print(what);
    io_print("\n");
    io_exit(1);
}

static void get(int file, void *data, uint32_t bytes) {
    if (bytes != 0 && io_read(file, data, bytes) != 0) {
        fail("cases.bin ends early");
    }
}

static void put(int file, const void *data, uint32_t bytes) {
    if (bytes != 0 && io_write(file, data, bytes) != 0) {
        fail("cannot write results.bin");
    }
}

#define CALL                                                                                       \
    called(argument[0], argument[1], argument[2], argument[3], argument[4], argument[5],           \
           argument[6], argument[7], argument[8], argument[9])
#define MARKED(id)                                                                                 \
    case id:                                                                                       \
        NN_MARK_BEGIN(id);                                                                         \
        result = CALL;                                                                             \
        NN_MARK_END();                                                                             \
        break;
#define MARKED4(id) MARKED(id) MARKED(id + 1) MARKED(id + 2) MARKED(id + 3)
#define MARKED16(id) MARKED4(id) MARKED4(id + 4) MARKED4(id + 8) MARKED4(id + 12)

static int32_t run(function called, uint32_t marker) {
    int32_t result = 0;
    switch (marker) {
        MARKED16(0)
        MARKED16(16)
        MARKED16(32)
        MARKED16(48)
    default:
        fail("a marker is too large");
    }
    return result;
}

static void run_case(int in, int out, const header *head) {
    uint32_t pairs[MAX_ARGUMENTS][2], places[MAX_RELOCATIONS];
    if (head->symbol >= symbol_count || head->arguments > MAX_ARGUMENTS ||
        head->relocations > MAX_RELOCATIONS || head->bytes > MEMORY_BYTES) {
        fail("a case is too large");
    }
    get(in, pairs, head->arguments * 8);
    get(in, places, head->relocations * 4);
    get(in, memory, head->bytes);
    for (uint32_t i = 0; i < head->arguments; i++) {
        argument[i] = pairs[i][1] + (pairs[i][0] ? (uintptr_t)memory : 0);
    }
    for (uint32_t i = 0; i < head->relocations; i++) {
        *(uint32_t *)(void *)(memory + places[i]) += (uint32_t)(uintptr_t)memory;
    }
    int32_t result = 0;
    for (uint32_t i = 0; i < head->repeats; i++) {
        result = run(symbols[head->symbol], head->marker);
    }
    for (uint32_t i = 0; i < head->relocations; i++) {
        *(uint32_t *)(void *)(memory + places[i]) -= (uint32_t)(uintptr_t)memory;
    }
    put(out, &result, 4);
    put(out, memory, head->bytes);
}

int main(void) {
    const int in = io_open_read("cases.bin"), out = io_open_write("results.bin");
    uint32_t count;
    header head;
    if (in < 0 || out < 0) {
        fail("cannot open a file");
    }
    get(in, &count, 4);
    NN_MARK_INVOKE_BEGIN();
    for (uint32_t i = 0; i < count; i++) {
        get(in, &head, sizeof head);
        run_case(in, out, &head);
    }
    NN_MARK_INVOKE_END();
    io_close(out);
    io_close(in);
    io_exit(0);
}
