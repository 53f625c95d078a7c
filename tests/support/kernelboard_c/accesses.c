/* A QEMU plugin that writes down which bytes each marked call loads and stores.
 *
 * Argument, besides those of plugin.h:
 *
 *   memory=BASE:BYTES     what every byte is watched of
 *
 * For every call, in order, the file gets the line "call", and then lines of what it touched:
 *
 *   load|store <first offset in memory> <offset behind the last>
 *   outside load|store <first address> <address behind the last>
 *
 * Outside of memory (stack, code, constants of the image) what lies within 64 bytes is one line.
 */
#include "../../../plugins/buildtool_plugins/qemu/plugin.h"

#include <stdlib.h>

#define MOST_OUTSIDE 4096
#define NEAR 64

typedef uint32_t qemu_plugin_meminfo_t;
enum { MEM_RW = 3 };
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
_Bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*callback)(unsigned, qemu_plugin_meminfo_t, uint64_t,
                                                       void *),
                                      int flags, int kind, void *data);

struct range {
    uint64_t first, end;
};
struct outside {
    struct range ranges[MOST_OUTSIDE];
    int count;
};

static const char *const names[2] = {"load", "store"};
static uint64_t base, bytes;
static uint8_t *touched; /* of each byte of memory: bit 0 loaded, bit 1 stored */
static uint64_t lowest, highest;
static struct outside outside[2];
static int running;
static char *text; /* what has been found of the calls so far */
static size_t text_length;
static FILE *found;

static void note_outside(struct outside *o, uint64_t first, uint64_t end) {
    for (int i = o->count - 1; i >= 0; i--) {
        struct range *r = &o->ranges[i];
        if (first <= r->end + NEAR && r->first <= end + NEAR) {
            r->first = first < r->first ? first : r->first;
            r->end = end > r->end ? end : r->end;
            return;
        }
    }
    if (o->count < MOST_OUTSIDE) {
        o->ranges[o->count++] = (struct range){first, end};
    }
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    const uint64_t end = address + (1u << qemu_plugin_mem_size_shift(info));
    const int store = qemu_plugin_mem_is_store(info);
    (void)cpu;
    (void)data;
    if (!running) {
        return;
    }
    for (uint64_t byte = address; byte < end; byte++) {
        const uint64_t offset = byte - base;
        if (offset >= bytes) {
            note_outside(&outside[store], byte, byte + 1);
            continue;
        }
        touched[offset] |= (uint8_t)(1 << store);
        lowest = offset < lowest ? offset : lowest;
        highest = offset > highest ? offset : highest;
    }
}

static void write_call(void) {
    fprintf(found, "call\n");
    for (int store = 0; store < 2; store++) {
        uint64_t first = 0;
        int before = 0;
        for (uint64_t at = lowest; at <= highest + 1 && lowest <= highest; at++) {
            const int now = at <= highest && (touched[at] >> store & 1) != 0;
            if (now && !before) {
                first = at;
            } else if (!now && before) {
                fprintf(found, "%s %llu %llu\n", names[store], (unsigned long long)first,
                        (unsigned long long)at);
            }
            before = now;
        }
        for (int i = 0; i < outside[store].count; i++) {
            fprintf(found, "outside %s %llu %llu\n", names[store],
                    (unsigned long long)outside[store].ranges[i].first,
                    (unsigned long long)outside[store].ranges[i].end);
        }
    }
    if (lowest <= highest) {
        memset(touched + lowest, 0, (size_t)(highest - lowest + 1));
    }
}

static void on_marker(unsigned cpu, void *data) {
    const unsigned code = code_of(data);
    (void)cpu;
    if (code < 64) {
        running = 1;
        lowest = bytes;
        highest = 0;
        outside[0].count = outside[1].count = 0;
    } else if (code == CODE_END && running) {
        running = 0;
        write_call();
    }
}

static void on_plain(struct qemu_plugin_insn *insn) {
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, CB_NO_REGS, MEM_RW, NULL);
}

static void on_cut(void) {
}

static int on_argument(const char *argument) {
    unsigned long long first, count;
    if (sscanf(argument, "memory=%llu:%llu", &first, &count) != 2) {
        return 0;
    }
    base = first;
    bytes = count;
    touched = calloc(1, (size_t)count);
    found = open_memstream(&text, &text_length);
    return touched != NULL && found != NULL;
}

static void on_end(FILE *out) {
    fclose(found);
    fwrite(text, 1, text_length, out);
}
