/* The test firmware of an attached board: it answers a host over a link (see frames.h).
 *
 *   request  payload                      answer   payload
 *   'H'      -                            'h'      a `hello`, then the plan's digest as text
 *   'K'      uint32 address, bytes        'k'      uint32 CRC-32 of that memory
 *   'S'      -                            's'      int32 status of init, uint32 stack used
 *   'P'      uint32 number of the set     'p'      - ; the arena is painted, the cycles are cleared
 *   'W'      uint32 offset, data          'w'      - ; data of the set's inputs, back to back
 *   'I'      -                            'i'      a `result`; before it, any number of
 *                                         'n'      uint32 row: the next requests are 'W' of that
 * row 't'      a part of the trace: the next request is 'A' 'A'      - as for 'I', which goes on
 *   'O'      uint32 offset, bytes         'o'      so much of the outputs, back to back
 *   'C'      uint32 operator              'c'      uint64 cycles of that operator and those after
 * it any                                   'e'      uint8 reason: 1 no session, 2 not understood
 *                                         'f'      int32 exit code, int32 operator, text: the
 * program has ended; it answers nothing else until a reset
 *
 * 'b', without a request, says that the board has begun. The trace is as in harness.c.
 */
#include "chip.h"
#include "cycles.h"
#include "frames.h"
#include "harness_arena.h"
#include "harness_io.h"
#include "nn_identity.h"
#include "semihosting.h"
#include "wire.h"

#ifdef NN_TRACE
#include "nn_trace.h"
#endif

#define PROTOCOL 1U
#define FLAG_TRACE 1U
#define FLAG_ROWS 2U
#define FLAG_HELD 4U    /* besides the rows of an image there are inputs that are written whole */
#define HEADER_WORDS 16 /* of the weight image's header */
#define MOST_COUNTS (FRAME_PAYLOAD / 8)
#define NOT_UNDERSTOOD 2
#define GIVEN_UP (-1)

NN_IDENTITY("test firmware 1 over a wire");

typedef struct {
    uint32_t protocol, flags, input_bytes, output_bytes, arena_bytes, operators;
    uint32_t core_hz, counter, overhead, row_bytes;
    uint32_t header[HEADER_WORDS];
} hello;

typedef struct {
    int32_t status;
    uint32_t arena_used, stack_used;
    uint32_t below, above; /* bytes that were written outside the arena */
    uint32_t cycles_low, cycles_high;
} result;

static uint32_t set_number;
static int computing, given_up; /* given_up: a host began anew while an invoke waited for it */

static uint32_t word_at(const uint8_t *data) {
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

/* ---- text and the end -------------------------------------------------------------------- */

/* What start-up code and fault handlers say, until the program ends; exit code and operator first.
 */
static struct {
    int32_t code, operator;
    char text[FRAME_PAYLOAD - 8];
} last_words;
static uint32_t text_bytes;

void semihosting_print(const char *text) {
    while (*text != '\0' && text_bytes < sizeof last_words.text) {
        last_words.text[text_bytes++] = *text++;
    }
}

void semihosting_exit(int code) {
    last_words.code = code;
    last_words.operator= cycles_running();
    for (;;) {
        answer('f', &last_words, 8 + text_bytes);
        (void)next_request();
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint32_t input_bytes(void) {
    uint32_t bytes = 0;
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        bytes += HARNESS_INPUT_BYTES(i);
    }
    return bytes;
}

static uint32_t output_bytes(void) {
    uint32_t bytes = 0;
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        bytes += HARNESS_OUTPUT_BYTES(i);
    }
    return bytes;
}

static void paint(void) {
    memset(block, GUARD_PAINT, GUARD_BYTES);
    memset(arena_end, GUARD_PAINT, GUARD_BYTES);
    memset(arena, paint_of(set_number), HARNESS_ARENA_BYTES);
#ifdef HARNESS_SECOND_ARENA_BYTES
    paint_second_guards();
    memset(second_arena, paint_of(set_number), HARNESS_SECOND_ARENA_BYTES);
#endif
#ifdef HARNESS_SET_LOADER
    at_once = set_number % 2 != 0;
#endif
}

/* Bytes of the guard below, from the arena's start to the furthest that is not as painted. */
static uint32_t written_below(void) {
    uint32_t i = 0;
    while (i < GUARD_BYTES && block[i] == GUARD_PAINT) {
        i++;
    }
    return GUARD_BYTES - i;
}

static uint32_t written_above(void) {
    uint32_t i = GUARD_BYTES;
    while (i > 0 && arena_end[i - 1] == GUARD_PAINT) {
        i--;
    }
    return i;
}

#ifdef HARNESS_SECOND_ARENA_BYTES
static uint32_t written_around_second(void) {
    return second_guards_intact() ? 0 : GUARD_BYTES;
}

static uint32_t arena_used(void) {
    return high_water(paint_of(set_number)) + second_high_water(paint_of(set_number));
}
#else
static uint32_t written_around_second(void) {
    return 0;
}

static uint32_t arena_used(void) {
    return high_water(paint_of(set_number));
}
#endif

/* ---- requests ---------------------------------------------------------------------------- */

static void refuse_request(void) {
    const uint8_t reason = NOT_UNDERSTOOD;
    answer('e', &reason, 1);
}

static void say_hello(void) {
    struct {
        hello is;
        char plan[sizeof HARNESS_PLAN - 1];
    } said = {
        {
            .protocol = PROTOCOL,
            .input_bytes = input_bytes(),
            .output_bytes = output_bytes(),
            .arena_bytes = ALL_ARENA_BYTES,
            .operators = HARNESS_OPERATORS,
            .core_hz = chip_core_hz(),
            .counter = cycles_state(),
            .overhead = cycles_overhead(),
        },
        {0},
    };
#ifdef NN_TRACE
    said.is.flags |= FLAG_TRACE;
#endif
#ifdef HARNESS_ROW_BYTES
    said.is.flags |= FLAG_ROWS;
    said.is.row_bytes = HARNESS_ROW_BYTES;
#ifdef HARNESS_INPUT
    said.is.flags |= FLAG_HELD;
#endif
#endif
    memcpy(said.is.header, HARNESS_WEIGHTS, sizeof said.is.header);
    memcpy(said.plan, HARNESS_PLAN, sizeof said.plan);
    answer('h', &said, sizeof said);
}

static void check_memory(const frame *request) {
    const uint8_t *const data = (const uint8_t *)(uintptr_t)word_at(request->payload);
    const uint32_t crc = crc32_of(data, word_at(request->payload + 4));
    answer('k', &crc, sizeof crc);
}

static void begin(void) {
    paint();
    const uint32_t used = io_call_measured(init);
    const uint32_t said[2] = {(uint32_t)status, used};
    answer('s', said, sizeof said);
}

static void prepare(const frame *request) {
    set_number = word_at(request->payload);
    paint();
    cycles_clear();
    answer('p', NULL, 0);
}

/* Copies between a payload and the tensors that lie behind one another there. */
#ifdef HARNESS_INPUT
static int write_inputs(const frame *request) {
    uint32_t offset = word_at(request->payload), bytes = request->bytes - 4U;
    const uint8_t *from = request->payload + 4;
    for (int i = 0; i < HARNESS_INPUTS && bytes > 0; i++) {
        const uint32_t size = HARNESS_INPUT_BYTES(i);
        if (offset >= size) {
            offset -= size;
            continue;
        }
        const uint32_t part = size - offset < bytes ? size - offset : bytes;
        if (HARNESS_INPUT(i) != NULL) { /* else it comes row by row */
            memcpy((uint8_t *)HARNESS_INPUT(i) + offset, from, part);
        }
        from += part;
        bytes -= part;
        offset = 0;
    }
    return bytes == 0;
}
#else
static int write_inputs(const frame *request) {
    (void)request;
    return 0; /* it comes row by row */
}
#endif

static void read_outputs(const frame *request) {
    static uint8_t found[FRAME_PAYLOAD];
    uint32_t offset = word_at(request->payload), bytes = word_at(request->payload + 4), have = 0;
    bytes = bytes < FRAME_PAYLOAD ? bytes : FRAME_PAYLOAD;
    for (int i = 0; i < HARNESS_OUTPUTS && have < bytes; i++) {
        const uint32_t size = HARNESS_OUTPUT_BYTES(i);
        if (offset >= size) {
            offset -= size;
            continue;
        }
        const uint32_t part = size - offset < bytes - have ? size - offset : bytes - have;
        memcpy(found + have, (const uint8_t *)HARNESS_OUTPUT(i) + offset, part);
        have += part;
        offset = 0;
    }
    answer('o', found, have);
}

static void tell_cycles(const frame *request) {
    uint32_t said[2 * MOST_COUNTS];
    const uint32_t first = word_at(request->payload);
    uint32_t count = 0;
    while (count < MOST_COUNTS && first + count < HARNESS_OPERATORS) {
        const uint64_t cycles = cycles_of(first + count);
        said[2 * count] = (uint32_t)cycles;
        said[2 * count + 1] = (uint32_t)(cycles >> 32);
        count++;
    }
    answer('c', said, 8 * count);
}

/* ---- an invoke --------------------------------------------------------------------------- */

#ifdef HARNESS_ROW_BYTES
/* Asks the host for a row (by its place in the set where there are inputs besides the image), and
 * takes it in parts; the last part is answered by what comes next. Where the host has begun anew,
 * the invoke is over. */
static int deliver_row(void *context, int32_t row, int8_t *data) {
#ifdef HARNESS_INPUT
    uint32_t wanted = (uint32_t)row * HARNESS_ROW_BYTES;
    for (int i = 0; i < HARNESS_IMAGE; i++) {
        wanted += HARNESS_INPUT_BYTES(i);
    }
#else
    const uint32_t wanted = (uint32_t)row;
#endif
    uint32_t left = HARNESS_ROW_BYTES;
    (void)context;
    if (given_up) {
        return GIVEN_UP;
    }
    cycles_pause();
    answer('n', &wanted, sizeof wanted);
    while (left > 0) {
        const frame *request = next_request();
        if (request->kind == 'H') {
            given_up = 1;
            break;
        }
        const uint32_t bytes = request->bytes - 4U, offset = word_at(request->payload);
        if (request->kind != 'W' || request->bytes < 4 || bytes > left ||
            offset != HARNESS_ROW_BYTES - left) {
            refuse_request();
            continue;
        }
        memcpy(data + offset, request->payload + 4, bytes);
        left -= bytes;
        if (left > 0) {
            answer('w', NULL, 0);
        }
    }
    cycles_resume();
    return given_up ? GIVEN_UP : 0;
}
#endif

#ifdef NN_TRACE
static uint8_t traced[FRAME_PAYLOAD];
static uint32_t traced_bytes;

/* Hands a part of the trace out, and waits until the host has it. */
static void flush_trace(void) {
    if (traced_bytes == 0 || given_up) {
        return;
    }
    cycles_pause();
    answer('t', traced, traced_bytes);
    traced_bytes = 0;
    int has_it = 0;
    while (!has_it && !given_up) {
        const uint8_t kind = next_request()->kind;
        has_it = kind == 'A';
        given_up = kind == 'H';
        if (!has_it && !given_up) {
            refuse_request();
        }
    }
    cycles_resume();
}

static void add_to_trace(const void *data, uint32_t bytes) {
    const uint8_t *from = data;
    while (bytes > 0 && !given_up) {
        const uint32_t room = FRAME_PAYLOAD - traced_bytes, part = bytes < room ? bytes : room;
        memcpy(traced + traced_bytes, from, part);
        traced_bytes += part;
        from += part;
        bytes -= part;
        if (traced_bytes == FRAME_PAYLOAD) {
            flush_trace();
        }
    }
}

void nn_trace(uint32_t tensor, uint32_t offset, const void *data, uint32_t bytes) {
    const uint32_t head[3] = {tensor, offset, bytes};
    if (computing) {
        add_to_trace(head, sizeof head);
        add_to_trace(data, bytes);
    }
}
#endif

static void run(void) {
    computing = 1;
    const uint32_t used = io_call_measured(invoke);
#ifdef NN_TRACE
    flush_trace();
#endif
    computing = 0;
    const uint64_t cycles = cycles_total();
    const result said = {
        .status = status,
        .arena_used = arena_used(),
        .stack_used = used,
        .below = written_below(),
        .above = written_above() + written_around_second(),
        .cycles_low = (uint32_t)cycles,
        .cycles_high = (uint32_t)(cycles >> 32),
    };
    if (!given_up) {
        answer('i', &said, sizeof said);
    }
}

/* Whether the request could be served. */
static int serve(const frame *request) {
    const uint8_t kind = request->kind;
    const uint32_t bytes = request->bytes;
    if (kind == 'H') {
        say_hello();
    } else if (kind == 'K' && bytes == 8) {
        check_memory(request);
    } else if (kind == 'S') {
        begin();
    } else if (kind == 'P' && bytes == 4) {
        prepare(request);
    } else if (kind == 'W' && bytes >= 4 && write_inputs(request)) {
        answer('w', NULL, 0);
    } else if (kind == 'I') {
        run();
    } else if (kind == 'O' && bytes == 8) {
        read_outputs(request);
    } else if (kind == 'C' && bytes == 4) {
        tell_cycles(request);
    } else {
        return 0;
    }
    return 1;
}

int main(void) {
    wire_start();
    cycles_start();
    answer('b', NULL, 0);
#ifdef HARNESS_ROW_BYTES
    HARNESS_SET_ROW_SOURCE(deliver_row);
#endif
    for (;;) {
        const frame *request = next_request();
        if (!serve(request)) {
            refuse_request();
        }
        if (given_up) { /* its hello came in the middle of an invoke */
            given_up = 0;
            say_hello();
        }
    }
}
