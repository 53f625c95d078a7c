/* A QEMU plugin that counts executed instructions by address, inside invokes.
 *
 *   -plugin addresses.so,out=FILE
 *
 * FILE gets a line "<address> <times>" for each instruction that ran between the markers of
 * kernels/include/nn_profile.h (Arm), markers left out. Code below 2 MB is seen. As in
 * plugins/buildtool_plugins/qemu/count.c, version 1 of the plugin interface is declared by hand.
 */
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

enum { CODE_INVOKE_BEGIN = 129, CODE_INVOKE_END = 130, CODES };
#define PLACES (1U << 20) /* of half words */

static uint64_t executed[PLACES], at_invoke[PLACES], total[PLACES];
static char out_path[512];

/* The marker's code, or -1 for every other instruction. */
static int marker_code(const struct qemu_plugin_insn *insn) {
    const uint8_t *bytes = qemu_plugin_insn_data(insn);
    if (qemu_plugin_insn_size(insn) < 4 || bytes[3] != 0x80 || bytes[1] != 0xF3 ||
        bytes[0] != 0xAF) { /* hint.w */
        return -1;
    }
    const int code = bytes[2] - 0x40;
    return code >= 0 && code < CODES ? code : -1;
}

static void on_marker(unsigned cpu, void *data) {
    const unsigned code = (unsigned)(uintptr_t)data;
    (void)cpu;
    if (code == CODE_INVOKE_BEGIN) {
        memcpy(at_invoke, executed, sizeof executed);
    } else if (code == CODE_INVOKE_END) {
        for (unsigned i = 0; i < PLACES; i++) {
            total[i] += executed[i] - at_invoke[i];
        }
    }
}

static void on_block(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const int code = marker_code(insn);
        const uint64_t place = qemu_plugin_insn_vaddr(insn) >> 1;
        if (code >= 0) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, CB_NO_REGS,
                                                   (void *)(uintptr_t)code);
        } else if (place < PLACES) {
            qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &executed[place], 1);
        }
    }
}

static void on_end(plugin_id id, void *data) {
    FILE *out = fopen(out_path, "w");
    (void)id;
    (void)data;
    if (out == NULL) {
        return;
    }
    for (unsigned i = 0; i < PLACES; i++) {
        if (total[i] != 0) {
            fprintf(out, "%u %llu\n", 2 * i, (unsigned long long)total[i]);
        }
    }
    fclose(out);
}

EXPORT int qemu_plugin_install(plugin_id id, const qemu_info *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0 && strlen(argv[i] + 4) < sizeof out_path) {
            strcpy(out_path, argv[i] + 4);
        }
    }
    if (out_path[0] == '\0') {
        fprintf(stderr, "addresses: out=FILE is missing\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
