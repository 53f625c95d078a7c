/* The test firmware that validates, profiles and traces a network.
 *
 * The network is reached through the macros of harness_net.h. Files, in the current folder:
 *
 *   input.bin   read: any number of sets, each all inputs back to back, of a network with state
 * behind a word that is not 0 where the state is reset before output.bin  written: all outputs back
 * to back, once for each set report.txt  written: key=value lines, decimal sets              inputs
 * run arena_bytes       the arena's size arena_high_water  end of the highest byte of the arena
 * that was written, over all sets stack_high_water  bytes of stack that init and invoke used; 0:
 * not known here guard_ok          1: the 64 bytes on either side of the arena are as they were
 *   cycles.bin  written with -DNN_CYCLES, of the first set: uint32 reason why none were counted
 * (see cycles.h), uint32 clock of the core, uint64 cycles of the invoke, uint64 of each operator
 *   trace.bin   written with -DNN_TRACE: {uint32 tensor, uint32 offset, uint32 bytes, data} for
 *               every nn_trace call, in order, all sets
 *
 * The arena is painted before each set, with 0xA5 and 0x5A in turn: a byte that is written with
 * what was there already shows in one of two sets. Inputs and outputs in the arena count as
 * written. Exit codes: 0; 1 a file; 2 init or invoke failed; 4 a guard was overwritten.
 */
#include "harness_arena.h"
#include "harness_io.h"
#include "nn_identity.h"

#include <string.h>

#ifdef NN_TRACE
#include "nn_trace.h"
#endif
#ifdef NN_VPU_COUNT /* the same marks, but issues are counted by who defines this */
#undef NN_CYCLES
#endif
#ifdef NN_CYCLES
#include "chip.h"
#include "cycles.h"
#endif

/* The number is of the files and report above: another one is another protocol. */
NN_IDENTITY("test firmware 1");

#define EXIT_FILE 1
#define EXIT_NETWORK 2
#define EXIT_GUARD 4

static int guards_watched;

/* ---- text ------------------------------------------------------------------------------- */

static char *put_text(char *to, const char *text) {
    while (*text != '\0') {
        *to++ = *text++;
    }
    *to = '\0';
    return to;
}

static char *put_number(char *to, int64_t value) {
    char digits[12];
    int count = 0;
    uint32_t rest = (uint32_t)(value < 0 ? -value : value);
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0) {
        *to++ = '-';
    }
    while (count > 0) {
        *to++ = digits[--count];
    }
    *to = '\0';
    return to;
}

/* "harness: <before><number><after>" and a line's end. */
static void say(const char *before, int64_t number, const char *after) {
    char line[160];
    char *end = put_text(line, "harness: ");
    end = put_text(end, before);
    end = put_number(end, number);
    end = put_text(end, after);
    put_text(end, "\n");
    io_print(line);
}

__attribute__((noreturn)) static void fail_file(const char *what) {
    io_print("harness: ");
    io_print(what);
    io_print("\n");
    io_exit(EXIT_FILE);
}

static void write_all(int handle, const void *data, uint32_t bytes) {
    if (handle < 0 || io_write(handle, data, bytes) != 0) {
        fail_file("cannot write an output file");
    }
}

/* ---- trace ------------------------------------------------------------------------------- */

#ifdef NN_TRACE
static int trace = -1;

static int tracing; /* not while init or reset runs the network */

void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes) {
    const uint32_t head[3] = {tensor, offset, bytes};
    if (tracing) {
        write_all(trace, head, sizeof head);
        write_all(trace, data, bytes);
    }
}
#endif

/* ---- arena ------------------------------------------------------------------------------- */

static void paint_guards(void) {
    const int below = io_forbid(block, GUARD_BYTES);
    const int above = io_forbid(arena_end, GUARD_BYTES);
    guards_watched = below && above;
    if (!guards_watched) {
        memset(block, GUARD_PAINT, GUARD_BYTES);
        memset(arena_end, GUARD_PAINT, GUARD_BYTES);
    }
#ifdef HARNESS_SECOND_ARENA_BYTES
    paint_second_guards();
#endif
}

/* Whether both guards are as painted; says where they are not. */
static int guards_intact(void) {
    int intact = 1;
#ifdef HARNESS_SECOND_ARENA_BYTES
    if (!second_guards_intact()) {
        say("the network wrote outside its second arena, within ", GUARD_BYTES, " bytes of it");
        return 0;
    }
#endif
    if (guards_watched) {
        return 1;
    }
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (block[GUARD_BYTES - 1 - i] != GUARD_PAINT) {
            say("the network wrote ", (int64_t)i + 1, " bytes below the arena's start");
            intact = 0;
            break;
        }
    }
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (arena_end[i] != GUARD_PAINT) {
            say("the network wrote ", (int64_t)i, " bytes above the arena's end");
            intact = 0;
            break;
        }
    }
    return intact;
}

/* ---- runs -------------------------------------------------------------------------------- */

static uint32_t arena_used, stack_used;

/* `complaint` is said, with the status, if the network is not content. */
static void measured(void (*function)(void), const char *complaint) {
    const uint32_t used = io_call_measured(function);
    stack_used = used > stack_used ? used : stack_used;
    if (status != 0) {
        say(complaint, status, "");
        io_exit(EXIT_NETWORK);
    }
}

/* An image that comes row by row is input HARNESS_IMAGE, by default the only input. */
#ifndef HARNESS_IMAGE
#define HARNESS_IMAGE 0
#endif

#ifdef HARNESS_ROW_BYTES
/* Bytes of the inputs before input `end` in a set. */
static uint32_t bytes_before(int end) {
    uint32_t bytes = 0;
    for (int i = 0; i < end; i++) {
        bytes += HARNESS_INPUT_BYTES(i);
    }
    return bytes;
}

/* A network that takes its image row by row gets each from the file: small memories cannot hold it.
 */
static int row_source;
static uint32_t image_start; /* in the file */

static int deliver_row(void *context, int32_t row, int8_t *data) {
    (void)context;
    if (io_seek(row_source, image_start + (uint32_t)row * HARNESS_ROW_BYTES) != 0 ||
        io_read(row_source, data, HARNESS_ROW_BYTES) != 0) {
        fail_file("cannot read a row of input.bin");
    }
    return 0;
}
#endif

/* Of a network with state, a set begins with a word that says whether the state is reset before it.
 */
#ifdef HARNESS_RESET
#define SET_HEAD_BYTES 4U

static void reset(void) {
    status = (int)HARNESS_RESET();
}

static void read_head(int input, uint32_t set) {
    uint32_t wanted = 0;
#ifdef HARNESS_ROW_BYTES
    if (io_seek(input, set * (SET_HEAD_BYTES + bytes_before(HARNESS_INPUTS))) != 0) {
        fail_file("cannot read input.bin");
    }
#else
    (void)set;
#endif
    if (io_read(input, &wanted, SET_HEAD_BYTES) != 0) {
        fail_file("cannot read input.bin");
    }
    if (wanted != 0) {
        measured(reset, "reset gave status ");
    }
}
#else
#define SET_HEAD_BYTES 0U
#endif

#ifdef HARNESS_INPUT
static void read_input(int input, int index) {
    if (io_read(input, HARNESS_INPUT(index), HARNESS_INPUT_BYTES(index)) != 0) {
        fail_file("cannot read input.bin");
    }
}
#endif

static void read_inputs(int input, uint32_t set) {
#ifdef HARNESS_ROW_BYTES
    const uint32_t start = set * (SET_HEAD_BYTES + bytes_before(HARNESS_INPUTS)) + SET_HEAD_BYTES;
    row_source = input;
    image_start = start + bytes_before(HARNESS_IMAGE);
    HARNESS_SET_ROW_SOURCE(deliver_row);
#ifdef HARNESS_INPUT
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        if (i != HARNESS_IMAGE) {
            if (io_seek(input, start + bytes_before(i)) != 0) {
                fail_file("cannot read input.bin");
            }
            read_input(input, i);
        }
    }
#endif
#else
    (void)set;
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        read_input(input, i);
    }
#endif
}

#ifdef NN_CYCLES
static void write_cycles(void) {
    const uint32_t head[2] = {cycles_state(), chip_core_hz()};
    const uint64_t total = cycles_total();
    const int file = io_open_write("cycles.bin");
    write_all(file, head, sizeof head);
    write_all(file, &total, sizeof total);
    for (uint32_t i = 0; i < HARNESS_OPERATORS; i++) {
        const uint64_t cycles = cycles_of(i);
        write_all(file, &cycles, sizeof cycles);
    }
    io_close(file);
}
#endif

static void run_set(int input, int output, uint32_t set) {
    const uint8_t paint = paint_of(set);
    paint_arenas(paint);
#ifdef HARNESS_SET_LOADER
    at_once = set % 2 != 0;
#endif
#ifdef HARNESS_RESET
    read_head(input, set);
#endif
    read_inputs(input, set);
#ifdef NN_CYCLES
    cycles_clear();
#endif
#ifdef NN_TRACE
    tracing = 1;
#endif
    measured(invoke, "invoke gave status ");
#ifdef NN_TRACE
    tracing = 0;
#endif
#ifdef NN_CYCLES
    if (set == 0) {
        write_cycles();
    }
#endif
#ifdef HARNESS_SECOND_ARENA_BYTES
    const uint32_t used = high_water(paint) + second_high_water(paint);
#else
    const uint32_t used = high_water(paint);
#endif
    arena_used = used > arena_used ? used : arena_used;
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        write_all(output, HARNESS_OUTPUT(i), HARNESS_OUTPUT_BYTES(i));
    }
}

static void write_report(uint32_t sets, int guard_ok) {
    char text[200];
    char *end = put_text(text, "sets=");
    end = put_number(end, sets);
    end = put_text(end, "\narena_bytes=");
    end = put_number(end, ALL_ARENA_BYTES);
    end = put_text(end, "\narena_high_water=");
    end = put_number(end, arena_used);
    end = put_text(end, "\nstack_high_water=");
    end = put_number(end, stack_used);
    end = put_text(end, "\nguard_ok=");
    end = put_number(end, guard_ok);
    end = put_text(end, "\n");
    const int report = io_open_write("report.txt");
    write_all(report, text, (uint32_t)(end - text));
    io_close(report);
}

static uint32_t count_sets(int input) {
    uint32_t set_bytes = SET_HEAD_BYTES;
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        set_bytes += HARNESS_INPUT_BYTES(i);
    }
    const int32_t bytes = input < 0 ? -1 : io_length(input);
    if (bytes < 0) {
        fail_file("cannot open input.bin");
    }
    if (set_bytes == 0 || (uint32_t)bytes % set_bytes != 0) {
        say("input.bin has ", bytes, " bytes, which is not a whole number of sets");
        say("a set has ", set_bytes, " bytes");
        io_exit(EXIT_FILE);
    }
    return (uint32_t)bytes / set_bytes;
}

int main(void) {
    const int input = io_open_read("input.bin");
    const int output = io_open_write("output.bin");
    const uint32_t sets = count_sets(input);
#ifdef NN_TRACE
    trace = io_open_write("trace.bin");
#endif
#ifdef NN_CYCLES
    cycles_start();
#endif
    paint_guards();
    measured(init, "init gave status ");
    uint32_t set = 0;
    int guard_ok = guards_intact();
    while (set < sets && guard_ok) {
        run_set(input, output, set);
        guard_ok = guards_intact();
        set++;
    }
    write_report(set, guard_ok);
#ifdef NN_TRACE
    io_close(trace);
#endif
    io_close(output);
    io_close(input);
    io_exit(guard_ok ? 0 : EXIT_GUARD);
}
