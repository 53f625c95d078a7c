/* Stands in for QEMU: hands a file of 4-byte instructions to the counting plugin, one block, once.
 */
#include PLUGIN

#include <stdlib.h>

struct qemu_plugin_insn {
    uint8_t bytes[4];
    uint64_t *counter;
    uint64_t add;
    void (*callback)(unsigned, void *);
    void *data;
};
struct qemu_plugin_tb {
    size_t count;
    struct qemu_plugin_insn insns[256];
};

static void (*translate)(plugin_id, struct qemu_plugin_tb *);
static void (*at_exit)(plugin_id, void *);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*callback)(plugin_id, struct qemu_plugin_tb *)) {
    (void)id;
    translate = callback;
}
void qemu_plugin_register_atexit_cb(plugin_id id, void (*callback)(plugin_id, void *), void *data) {
    (void)id;
    (void)data;
    at_exit = callback;
}
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb) {
    return tb->count;
}
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index) {
    return (struct qemu_plugin_insn *)&tb->insns[index];
}
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn) {
    return insn->bytes;
}
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn) {
    (void)insn;
    return 4;
}
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn) {
    (void)insn;
    return 0;
}
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            void (*callback)(unsigned, void *), int flags,
                                            void *data) {
    (void)flags;
    insn->callback = callback;
    insn->data = data;
}
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int operation,
                                                void *counter, uint64_t add) {
    if (operation != INLINE_ADD_U64) {
        abort();
    }
    insn->counter = counter;
    insn->add = add;
}

int main(int argc, char **argv) {
    static struct qemu_plugin_tb block;
    char isa[16] = "isa=", out[] = "out=counts.txt";
    char *arguments[] = {isa, out};
    FILE *code = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (code == NULL) {
        return 1;
    }
    while (block.count < 256 && fread(block.insns[block.count].bytes, 4, 1, code) == 1) {
        block.count++;
    }
    fclose(code);
    strcat(isa, argv[1]);
    if (qemu_plugin_install(1, NULL, 2, arguments) != 0) {
        return 2;
    }
    translate(1, &block);
    for (size_t i = 0; i < block.count; i++) {
        struct qemu_plugin_insn *insn = &block.insns[i];
        if (insn->counter != NULL) {
            *insn->counter += insn->add;
        }
        if (insn->callback != NULL) {
            insn->callback(0, insn->data);
        }
    }
    at_exit(1, NULL);
    return 0;
}
