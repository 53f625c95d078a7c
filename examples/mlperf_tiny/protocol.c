/* Commands of the MLPerf Tiny runner: each ends with '%' and is answered by lines, the last one of
 * which is "m-ready". Errors are lines "e-[...]"; a wrong command changes nothing. */
#include "protocol.h"
#include "th.h"

#include <string.h>

#define DEFAULT_WARMUP 10u
#define PRINTED_BYTES 8u /* in a line of `db print` */
#define MOST_NUMBER 1000000000u

static char line[EE_CMD_SIZE + 1];
static size_t line_length;
static int line_is_too_long;

static uint8_t buffer[MAX_DB_INPUT_SIZE];
static size_t expected_bytes, loaded_bytes;

/* ---- words of a command ------------------------------------------------------------------ */

/* Cuts the next word off `*rest`; NULL where there is none. */
static char *next_word(char **rest) {
    char *first = *rest;
    while (*first == ' ') {
        first++;
    }
    char *end = first;
    while (*end != ' ' && *end != '\0') {
        end++;
    }
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return *first == '\0' ? NULL : first;
}

static int is(const char *word, const char *name) {
    const size_t length = strlen(name);
    return strlen(word) == length && memcmp(word, name, length) == 0;
}

/* Reads a decimal number of at most MOST_NUMBER; whether the whole word is one. */
static int read_number(const char *word, uint32_t *number) {
    uint32_t value = 0;
    const char *at = word;
    for (; *at >= '0' && *at <= '9' && value <= MOST_NUMBER / 10; at++) {
        value = value * 10 + (uint32_t)(*at - '0');
    }
    *number = value;
    return at != word && *at == '\0' && value <= MOST_NUMBER;
}

/* The value of a hexadecimal digit; -1 where it is none. */
static int hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    const char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* ---- db: the buffer ---------------------------------------------------------------------- */

static void expect_bytes(const char *word) {
    uint32_t bytes;
    if (word == NULL) {
        th_printf("e-[Command 'db load' requires the # of bytes]\r\n");
    } else if (!read_number(word, &bytes) || bytes == 0) {
        th_printf("e-[Command 'db load' must be >0 bytes]\r\n");
    } else if (bytes > MAX_DB_INPUT_SIZE) {
        th_printf("e-[Supplied buffer size %u exceeds maximum of %u]\r\n", (unsigned)bytes,
                  (unsigned)MAX_DB_INPUT_SIZE);
    } else {
        expected_bytes = bytes;
        loaded_bytes = 0;
        th_printf("m-[Expecting %u bytes]\r\n", (unsigned)bytes);
    }
}

/* Appends bytes, all of the word or none. Digits behind the last expected byte are disregarded. */
static void load_bytes(const char *digits) {
    const size_t length = strlen(digits), room = expected_bytes - loaded_bytes;
    if (length % 2 != 0) {
        th_printf("e-[Insufficient number of hex digits]\r\n");
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (hex_digit(digits[i]) < 0) {
            th_printf("e-[Invalid hex digit '%c']\r\n", digits[i]);
            return;
        }
    }
    if (room == 0) {
        th_printf("e-[No bytes are expected: 'db load' first]\r\n");
        return;
    }
    const size_t bytes = length / 2 < room ? length / 2 : room;
    for (size_t i = 0; i < bytes; i++) {
        const int value = hex_digit(digits[2 * i]) << 4 | hex_digit(digits[2 * i + 1]);
        buffer[loaded_bytes++] = (uint8_t)value;
    }
    if (loaded_bytes == expected_bytes) {
        th_printf("m-load-done\r\n");
    }
}

static void print_buffer(void) {
    for (size_t i = 0; i < loaded_bytes; i++) {
        const int ends = (i + 1) % PRINTED_BYTES == 0 || i + 1 == loaded_bytes;
        th_printf("%s%02x%s", i % PRINTED_BYTES == 0 ? "m-buffer-" : "-", (unsigned)buffer[i],
                  ends ? "\r\n" : "");
    }
}

static void run_db(char *rest) {
    const char *word = next_word(&rest);
    if (word == NULL) {
        th_printf("e-[Command 'db' requires a subcommand]\r\n");
    } else if (is(word, "load")) {
        expect_bytes(next_word(&rest));
    } else if (is(word, "print")) {
        print_buffer();
    } else {
        load_bytes(word);
    }
}

size_t ee_get_buffer(uint8_t *to, size_t most) {
    const size_t bytes = loaded_bytes < most ? loaded_bytes : most;
    if (to != NULL) {
        memcpy(to, buffer, bytes);
    }
    return bytes;
}

/* ---- infer ------------------------------------------------------------------------------- */

static void infer(uint32_t iterations, uint32_t warmups) {
    th_load_tensor();
    th_printf("m-warmup-start-%u\r\n", (unsigned)warmups);
    for (uint32_t i = 0; i < warmups; i++) {
        th_infer();
    }
    th_printf("m-warmup-done\r\nm-infer-start-%u\r\n", (unsigned)iterations);
    th_timestamp();
    th_pre();
    for (uint32_t i = 0; i < iterations; i++) {
        th_infer();
    }
    th_post();
    th_timestamp();
    th_printf("m-infer-done\r\n");
    th_results();
}

static void run_infer(char *rest) {
    uint32_t iterations = 1, warmups = DEFAULT_WARMUP;
    const char *const first = next_word(&rest), *const second = next_word(&rest);
    if (first != NULL && (!read_number(first, &iterations) || iterations == 0)) {
        th_printf("e-[Inference iterations must be >0]\r\n");
    } else if (second != NULL && !read_number(second, &warmups)) {
        th_printf("e-[Inference warmup must be >=0]\r\n");
    } else if (loaded_bytes == 0 || loaded_bytes != expected_bytes) {
        th_printf("e-[%u of %u bytes are loaded: 'db load' and 'db' first]\r\n",
                  (unsigned)loaded_bytes, (unsigned)expected_bytes);
    } else {
        infer(iterations, warmups);
    }
}

/* ---- commands ---------------------------------------------------------------------------- */

static void print_help(void) {
    th_printf(EE_FW_VERSION "\r\n\r\n"
                            "help         : Print this information\r\n"
                            "name         : Print the name of the device\r\n"
                            "timestamp    : Print the time in microseconds\r\n"
                            "profile      : Print the firmware's version and the model\r\n"
                            "db load N    : Expect N bytes\r\n"
                            "db HH[HH]*   : Load 8-bit hex byte(s), until N bytes\r\n"
                            "db print     : Print the loaded bytes\r\n"
                            "infer N [W]  : Execute N inferences after W (10) warmups\r\n"
                            "results      : Print the result vector\r\n");
}

void ee_serial_command_parser_callback(char *command) {
    char *rest = command;
    const char *const word = next_word(&rest);
    if (word == NULL) {
        th_printf("e-[Empty command]\r\n");
    } else if (is(word, "name")) {
        th_printf("m-name-dut-[%s]\r\n", TH_VENDOR_NAME_STRING);
    } else if (is(word, "timestamp")) {
        th_timestamp();
    } else if (is(word, "profile")) {
        th_printf("m-profile-[%s]\r\nm-model-[%s]\r\n", EE_FW_VERSION, TH_MODEL_VERSION);
    } else if (is(word, "help")) {
        print_help();
    } else if (is(word, "db")) {
        run_db(rest);
    } else if (is(word, "infer")) {
        run_infer(rest);
    } else if (is(word, "results")) {
        th_results();
    } else {
        th_printf("e-[Unknown command: %s]\r\n", word);
    }
    th_printf("m-ready\r\n");
}

void ee_serial_callback(char c) {
    if (c == '\r' || c == '\n') {
        return; /* of somebody at a terminal */
    }
    if (c != EE_CMD_TERMINATOR) {
        if (line_length < EE_CMD_SIZE) {
            line[line_length++] = c;
        } else {
            line_is_too_long = 1;
        }
        return;
    }
    line[line_length] = '\0';
    line_length = 0;
    if (line_is_too_long) {
        line_is_too_long = 0;
        th_printf("e-[A command has at most %u characters]\r\nm-ready\r\n", EE_CMD_SIZE);
    } else {
        th_command_ready(line);
    }
}

void ee_benchmark_initialize(void) {
    th_serialport_initialize();
    th_timestamp_initialize();
    th_final_initialize();
    th_printf("m-init-done\r\nm-ready\r\n");
}
