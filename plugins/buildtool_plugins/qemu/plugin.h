/* What QEMU plugins share that count instructions between the markers of
 * kernels/include/nn_profile.h.
 *
 * A plugin defines the functions declared below, and is loaded with
 *
 *   -plugin NAME.so,isa=arm|riscv|xtensa,out=FILE
 *
 * QEMU's headers are not needed: version 1 of its plugin interface is declared here by hand.
 */
#ifndef BUILDTOOL_QEMU_PLUGIN_H
#define BUILDTOOL_QEMU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef struct qemu_info_t qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS = 0, INLINE_ADD_U64 = 0 }; /* of two enumerations */

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*callback)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(plugin_id id, void (*callback)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            void (*callback)(unsigned, void *), int flags,
                                            void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int operation,
                                                void *counter, uint64_t add);

EXPORT int qemu_plugin_version = 1;

/* Marker codes: 0-63 begin an operator by its low bits, 64-127 add its high bits, then: */
enum { CODE_END = 128, CODE_INVOKE_BEGIN = 129, CODE_INVOKE_END = 130, CODES };

static void on_marker(unsigned cpu, void *data);     /* a marker is about to run (see below) */
static void on_plain(struct qemu_plugin_insn *insn); /* another instruction is translated */
static void on_cut(void); /* what is translated next need not run after what was before it */
static int on_argument(const char *text); /* whether an argument is one of the plugin's own */
static void on_end(FILE *out);            /* the run has ended: writes what was counted */

static enum { ARM, RISCV, XTENSA } isa;
static char out_path[512];

/* What `on_marker` gets: the marker's code and its address, in one word. */
static inline unsigned code_of(const void *data) {
    return (unsigned)((uintptr_t)data & 0xFF);
}
static inline uint64_t address_of(const void *data) {
    return (uint64_t)((uintptr_t)data >> 8);
}

/* The marker's code, or -1 for every other instruction. */
static int marker_code(const struct qemu_plugin_insn *insn) {
    const uint8_t *bytes = qemu_plugin_insn_data(insn);
    uint32_t word;
    if (isa == XTENSA) { /* moveqz ar, ar, at */
        const int is_marker = qemu_plugin_insn_size(insn) == 3 && bytes[2] == 0x83 &&
                              bytes[1] >> 4 == (bytes[1] & 15) && (bytes[0] & 15) == 0;
        const int number = (bytes[1] & 0xF0) | bytes[0] >> 4;
        return is_marker && number < CODES ? number : -1;
    }
    /* Two bytes too many before a Thumb instruction that straddles pages: QEMU peeked at it. */
    if (qemu_plugin_insn_size(insn) < 4) {
        return -1;
    }
    int code = -1;
    if (isa == RISCV) {
        word = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
        if ((word & 0xFFFFF) == 0x00013) { /* addi x0, x0, immediate */
            code = (int)(word >> 20) - 0x100;
        }
    } else { /* two half words, each little-endian */
        word = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[0] << 16 | (uint32_t)bytes[3] << 8 |
               bytes[2];
        if ((word & 0xFFFFFF00) == 0xF3AF8000) { /* hint.w */
            code = (int)(word & 0xFF) - 0x40;
        }
    }
    return code >= 0 && code < CODES ? code : -1;
}

/* A digit of a marker of Arm's v6-M, or -1. */
static int marker_digit(const struct qemu_plugin_insn *insn) {
    const uint8_t *bytes = qemu_plugin_insn_data(insn);
    /* Two bytes, or four as below. */
    if (isa != ARM || bytes[1] != 0xBF || (bytes[0] & 15) != 0) {
        return -1;
    }
    return (bytes[0] >> 4) - 8;
}

/* The digits of a marker run one after the other; the last one is the marker. */
static void on_digit(unsigned cpu, void *data) {
    static unsigned digits, code;
    static uint64_t address;
    address = digits == 0 ? address_of(data) : address;
    code = code << 3 | code_of(data);
    if (++digits == 3) {
        const unsigned whole = code;
        digits = code = 0;
        if (whole < CODES) {
            on_marker(cpu, (void *)(uintptr_t)(address << 8 | whole));
        }
    }
}

static void on_block(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const int digit = marker_digit(insn), code = digit < 0 ? marker_code(insn) : digit;
        if (code < 0) {
            on_plain(insn);
        } else {
            const uint64_t data = qemu_plugin_insn_vaddr(insn) << 8 | (unsigned)code;
            qemu_plugin_register_vcpu_insn_exec_cb(insn, digit < 0 ? on_marker : on_digit,
                                                   CB_NO_REGS, (void *)(uintptr_t)data);
            on_cut();
        }
    }
    on_cut();
}

static void on_exit_of_qemu(plugin_id id, void *data) {
    FILE *out = fopen(out_path, "w");
    (void)id;
    (void)data;
    if (out == NULL) {
        return;
    }
    on_end(out);
    fclose(out);
}

EXPORT int qemu_plugin_install(plugin_id id, const qemu_info *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0 && strlen(argv[i] + 4) < sizeof out_path) {
            strcpy(out_path, argv[i] + 4);
        } else if (strcmp(argv[i], "isa=arm") == 0) {
            isa = ARM;
        } else if (strcmp(argv[i], "isa=riscv") == 0) {
            isa = RISCV;
        } else if (strcmp(argv[i], "isa=xtensa") == 0) {
            isa = XTENSA;
        } else if (!on_argument(argv[i])) {
            fprintf(stderr, "plugin: unknown argument '%s'\n", argv[i]);
            return 1;
        }
    }
    if (out_path[0] == '\0') {
        fprintf(stderr, "plugin: out=FILE is missing\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}

#endif
