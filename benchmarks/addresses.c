/* A QEMU plugin that counts executed instructions by address, inside invokes.
 *
 * The file gets a line "<address> <times>" for each instruction that ran between the markers of an
 * invoke, markers left out. Addresses are modulo 2 MB: no board has code in two such pieces.
 */
#include "../plugins/buildtool_plugins/qemu/plugin.h"

#define PLACES (1U << 20) /* of half words */

static uint64_t executed[PLACES], at_invoke[PLACES], total[PLACES];

static void on_marker(unsigned cpu, void *data) {
    const unsigned code = code_of(data);
    (void)cpu;
    if (code == CODE_INVOKE_BEGIN) {
        memcpy(at_invoke, executed, sizeof executed);
    } else if (code == CODE_INVOKE_END) {
        for (unsigned i = 0; i < PLACES; i++) {
            total[i] += executed[i] - at_invoke[i];
        }
    }
}

static void on_plain(struct qemu_plugin_insn *insn) {
    const uint64_t place = (qemu_plugin_insn_vaddr(insn) >> 1) % PLACES;
    qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &executed[place], 1);
}

static void on_cut(void) {
}

static int on_argument(const char *text) {
    (void)text;
    return 0;
}

static void on_end(FILE *out) {
    for (unsigned i = 0; i < PLACES; i++) {
        if (total[i] != 0) {
            fprintf(out, "%u %llu\n", 2 * i, (unsigned long long)total[i]);
        }
    }
}
