/* A QEMU plugin that counts executed instructions: per marked operator, and of the whole invoke.
 *
 * Markers are not counted themselves. The file gets a line "<operator> <instructions>" for each
 * operator that ran, then "invokes <n>" and "total <instructions>", all summed over the run; before
 * these two "running <operator>", if the run ended in the middle of one. Every
 * instruction adds one to a counter, inline, before it executes: exact also where a block is left
 * in the middle.
 */
#include "plugin.h"

#define MAX_OPERATORS 4096

static uint64_t executed;  /* all instructions but markers */
static uint64_t at_begin;  /* `executed` when the running operator began */
static uint64_t at_invoke; /* and the running invoke */
static uint64_t total, invokes;
static uint64_t of_operator[MAX_OPERATORS];
static uint8_t ran[MAX_OPERATORS];
static int operator_running = -1, invoke_running;

static void on_marker(unsigned cpu, void *data) {
    const unsigned code = code_of(data);
    (void)cpu;
    if (code < 64) {
        operator_running = (int)code;
        at_begin = executed;
    } else if (code < CODE_END && operator_running >= 0) {
        operator_running |= (int)((code - 64) << 6);
    } else if (code == CODE_END && operator_running >= 0) {
        if (invoke_running) { /* an init may run the network, too */
            of_operator[operator_running] += executed - at_begin;
            ran[operator_running] = 1;
        }
        operator_running = -1;
    } else if (code == CODE_INVOKE_BEGIN) {
        invoke_running = 1;
        at_invoke = executed;
    } else if (code == CODE_INVOKE_END && invoke_running) {
        total += executed - at_invoke;
        invokes++;
        invoke_running = 0;
    }
}

static void on_plain(struct qemu_plugin_insn *insn) {
    qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &executed, 1);
}

static void on_cut(void) {
}

static int on_argument(const char *text) {
    (void)text;
    return 0;
}

static void on_end(FILE *out) {
    for (int i = 0; i < MAX_OPERATORS; i++) {
        if (ran[i]) {
            fprintf(out, "%d %llu\n", i, (unsigned long long)of_operator[i]);
        }
    }
    if (operator_running >= 0) {
        fprintf(out, "running %d\n", operator_running);
    }
    fprintf(out, "invokes %llu\ntotal %llu\n", (unsigned long long)invokes,
            (unsigned long long)total);
}
