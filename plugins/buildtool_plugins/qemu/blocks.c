/* A QEMU plugin that counts which blocks of code every operator runs, for estimates of cycles.
 *
 * A block is what QEMU translates at once, cut at markers: code without a branch but at its end.
 * The counts of count.c are written too, and then, all summed over the run:
 *
 *   block <number> <address> <bytes in hex>
 *   ran <operator> <block> <times> <times that something else than the next address ran after it>
 *   reads <operator> <memory> <code> <lines> <1> <2> <4> <8> <16>
 *
 * Operator -1 is what an invoke runs between its operators. `reads` counts, of each memory that the
 * arguments name, the lines (without a cache: the words of the bus) that were fetched as code, the
 * lines of data that were fetched into the cache, and the accesses to data by their bytes that went
 * past it. Arguments, caches first:
 *
 *   cache=LINE:CODE_BYTES:DATA_BYTES:WAYS       (0 ways: a line may lie anywhere)
 *   memory=BASE:SIZE:BUS_BYTES:CACHE            (-1: none; else the number of a cache)
 *
 * A cache keeps the lines that were used last; a write fetches the line that it changes.
 */
#include "plugin.h"

#include <stdlib.h>

#define MAX_OPERATORS 4096
#define OUTSIDE MAX_OPERATORS /* between operators */
#define MAX_MEMORIES 8
#define MAX_CACHES 4
#define SIZES 5 /* of accesses: 1 to 16 bytes */
#define BUCKETS 4096

typedef uint32_t qemu_plugin_meminfo_t;
enum { MEM_RW = 3 };
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      void (*callback)(unsigned, qemu_plugin_meminfo_t, uint64_t,
                                                       void *),
                                      int flags, int kind, void *data);

/* ---- caches and memories -------------------------------------------------------------------- */

struct lines { /* one half of a cache: sets of line numbers, the one used last first */
    uint64_t *numbers;
    uint32_t sets, ways;
};
struct cache {
    uint32_t line_bytes;
    struct lines code, data;
};
struct fetched {
    uint64_t code, lines, accesses[SIZES];
};
static struct cache caches[MAX_CACHES];
static struct {
    uint64_t base, size;
    uint32_t bus_bytes;
    struct cache *cache;
} memories[MAX_MEMORIES];
static int cache_count, memory_count;
static struct fetched fetched[MAX_MEMORIES]; /* since the last flush */

static struct lines make_lines(uint32_t bytes, uint32_t line, uint32_t ways) {
    struct lines made = {NULL, 0, 0};
    if (bytes != 0) {
        made.ways = ways != 0 ? ways : bytes / line;
        made.sets = bytes / line / made.ways;
        made.numbers = calloc((size_t)made.sets * made.ways, sizeof *made.numbers);
    }
    return made;
}

/* Whether a line had to be fetched. */
static int misses(struct lines *lines, uint64_t number) {
    uint64_t *set = lines->numbers + number % lines->sets * lines->ways, before = number + 1;
    for (uint32_t way = 0; way < lines->ways; way++) {
        const uint64_t here = set[way]; /* 0: nothing yet */
        set[way] = before;
        if (here == number + 1) {
            return 0;
        }
        before = here;
    }
    return 1;
}

static int memory_of(uint64_t address) {
    for (int i = 0; i < memory_count; i++) {
        if (address - memories[i].base < memories[i].size) {
            return i;
        }
    }
    return -1;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    const int memory = memory_of(address);
    const unsigned shift = qemu_plugin_mem_size_shift(info);
    (void)cpu;
    (void)data;
    if (memory < 0) {
        return;
    }
    struct cache *cache = memories[memory].cache;
    if (cache == NULL || cache->data.numbers == NULL) {
        fetched[memory].accesses[shift < SIZES ? shift : SIZES - 1]++;
        return;
    }
    const uint64_t last = (address + (1u << shift) - 1) / cache->line_bytes;
    for (uint64_t line = address / cache->line_bytes; line <= last; line++) {
        fetched[memory].lines += (uint64_t)misses(&cache->data, line);
    }
}

static void fetch_code(uint64_t start, uint64_t end) {
    const int memory = memory_of(start);
    if (memory < 0) {
        return;
    }
    struct cache *cache = memories[memory].cache;
    if (cache == NULL || cache->code.numbers == NULL) {
        const uint32_t bus = memories[memory].bus_bytes;
        fetched[memory].code += (end - 1) / bus - start / bus + 1;
        return;
    }
    for (uint64_t line = start / cache->line_bytes; line <= (end - 1) / cache->line_bytes; line++) {
        fetched[memory].code += (uint64_t)misses(&cache->code, line);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block {
    uint64_t start, end; /* addresses */
    uint64_t instructions;
    uint64_t times, taken; /* since the last flush */
    uint8_t *bytes;
    int number, is_touched, is_open; /* open: it is being translated */
    struct block *in_bucket, *touched_before;
};
struct ran {
    uint64_t times, taken;
};
struct work { /* of an operator */
    uint64_t instructions;
    struct ran *ran; /* by the number of a block */
    int ran_count, is_there;
    struct fetched fetched[MAX_MEMORIES];
};
static struct block *buckets[BUCKETS], **blocks, *open_block, *touched, *last;
static int block_count;
static uint64_t next_address; /* what runs after `last` if that does not branch */
static struct work work[MAX_OPERATORS + 1];
static uint64_t total, invokes;
static int operator_running = -1, invoke_running;

static void *grown(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (made == NULL) {
        fprintf(stderr, "plugin: no memory is left\n");
        exit(1);
    }
    return made;
}

static void touch(struct block *block) {
    if (!block->is_touched) {
        block->is_touched = 1;
        block->touched_before = touched;
        touched = block;
    }
}

static void arrive(uint64_t address) {
    if (last != NULL && address != next_address) {
        touch(last);
        last->taken++;
    }
}

static void on_run(unsigned cpu, void *data) {
    struct block *block = data;
    (void)cpu;
    arrive(block->start);
    touch(block);
    block->times++;
    last = block;
    next_address = block->end;
    if (memory_count != 0) {
        fetch_code(block->start, block->end);
    }
}

/* Hands what was counted since the last time to whoever ran; -1: to nobody. */
static void flush_to(int who) {
    struct work *owner = who < 0 ? NULL : &work[who];
    for (struct block *block = touched; block != NULL; block = block->touched_before) {
        if (owner != NULL) {
            if (owner->ran_count <= block->number) {
                const int wanted = block_count + 64;
                owner->ran = grown(owner->ran, (size_t)wanted * sizeof *owner->ran);
                memset(owner->ran + owner->ran_count, 0,
                       (size_t)(wanted - owner->ran_count) * sizeof *owner->ran);
                owner->ran_count = wanted;
            }
            owner->ran[block->number].times += block->times;
            owner->ran[block->number].taken += block->taken;
            owner->instructions += block->times * block->instructions;
            owner->is_there = 1;
        }
        block->times = block->taken = 0;
        block->is_touched = 0;
    }
    touched = NULL;
    for (int i = 0; i < memory_count; i++) {
        if (owner != NULL) {
            owner->fetched[i].code += fetched[i].code;
            owner->fetched[i].lines += fetched[i].lines;
            for (int size = 0; size < SIZES; size++) {
                owner->fetched[i].accesses[size] += fetched[i].accesses[size];
            }
        }
        memset(&fetched[i], 0, sizeof fetched[i]);
    }
}

static int running(void) {
    return !invoke_running ? -1 : operator_running >= 0 ? operator_running : OUTSIDE;
}

static void on_marker(unsigned cpu, void *data) {
    const unsigned code = code_of(data);
    (void)cpu;
    arrive(address_of(data));
    next_address = address_of(data) + 4; /* of both instruction sets that have blocks */
    if (code >= 64 && code < CODE_END) {
        if (operator_running >= 0) {
            operator_running |= (int)((code - 64) << 6);
        }
        return;
    }
    flush_to(running());
    if (code < 64) {
        operator_running = (int)code;
    } else if (code == CODE_END) {
        if (operator_running >= 0) {
            work[operator_running].is_there = 1;
        }
        operator_running = -1;
    } else if (code == CODE_INVOKE_BEGIN) {
        invoke_running = 1;
    } else if (code == CODE_INVOKE_END && invoke_running) {
        invokes++;
        invoke_running = 0;
    }
}

/* ---- translation ----------------------------------------------------------------------------- */

/* Bytes of an instruction: QEMU may have peeked at the next one. */
static unsigned length(const uint8_t *bytes) {
    if (isa == ARM) {
        return bytes[1] >> 3 >= 0x1D ? 4 : 2;
    }
    return (bytes[0] & 3) == 3 ? 4 : 2;
}

/* A block that is there twice, because QEMU translated it again, goes on with its number. */
static void close_block(void) {
    struct block *block = open_block;
    open_block = NULL;
    if (block == NULL) {
        return;
    }
    struct block **bucket = &buckets[(block->start >> 1 ^ block->end) % BUCKETS];
    for (struct block *other = *bucket; other != NULL; other = other->in_bucket) {
        if (other->start == block->start && other->end == block->end &&
            memcmp(other->bytes, block->bytes, (size_t)(block->end - block->start)) == 0) {
            block->number = other->number;
            return;
        }
    }
    block->number = block_count;
    block->in_bucket = *bucket;
    *bucket = block;
    blocks = grown(blocks, (size_t)(block_count + 1) * sizeof(*blocks));
    blocks[block_count++] = block;
}

static void on_cut(void) {
    close_block();
}

static void on_plain(struct qemu_plugin_insn *insn) {
    const uint8_t *bytes = qemu_plugin_insn_data(insn);
    const unsigned size = length(bytes);
    const uint64_t address = qemu_plugin_insn_vaddr(insn);
    if (open_block == NULL) {
        open_block = grown(NULL, sizeof *open_block);
        memset(open_block, 0, sizeof *open_block);
        open_block->start = open_block->end = address;
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_run, CB_NO_REGS, open_block);
    }
    const size_t before = (size_t)(open_block->end - open_block->start);
    open_block->bytes = grown(open_block->bytes, before + size);
    memcpy(open_block->bytes + before, bytes, size);
    open_block->end = address + size;
    open_block->instructions++;
    if (memory_count != 0) {
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, CB_NO_REGS, MEM_RW, NULL);
    }
}

static int on_argument(const char *text) {
    unsigned long long base, size;
    unsigned a, b, c, d;
    int cache;
    if (sscanf(text, "cache=%u:%u:%u:%u", &a, &b, &c, &d) == 4 && cache_count < MAX_CACHES) {
        const struct cache made = {a, make_lines(b, a, d), make_lines(c, a, d)};
        caches[cache_count++] = made;
        return 1;
    }
    if (sscanf(text, "memory=%llu:%llu:%u:%d", &base, &size, &a, &cache) == 4 &&
        memory_count < MAX_MEMORIES && cache < cache_count) {
        memories[memory_count].base = base;
        memories[memory_count].size = size;
        memories[memory_count].bus_bytes = a;
        memories[memory_count++].cache = cache >= 0 ? &caches[cache] : NULL;
        return 1;
    }
    return 0;
}

static void write_block(FILE *out, const struct block *block) {
    fprintf(out, "block %d %llu ", block->number, (unsigned long long)block->start);
    for (uint64_t i = 0; i < block->end - block->start; i++) {
        fprintf(out, "%02x", block->bytes[i]);
    }
    fprintf(out, "\n");
}

static void write_work(FILE *out, int who) {
    const struct work *of = &work[who];
    const int name = who == OUTSIDE ? -1 : who;
    for (int i = 0; i < of->ran_count; i++) {
        if (of->ran[i].times != 0 || of->ran[i].taken != 0) {
            fprintf(out, "ran %d %d %llu %llu\n", name, i, (unsigned long long)of->ran[i].times,
                    (unsigned long long)of->ran[i].taken);
        }
    }
    for (int i = 0; of->is_there && i < memory_count; i++) {
        fprintf(out, "reads %d %d %llu %llu", name, i, (unsigned long long)of->fetched[i].code,
                (unsigned long long)of->fetched[i].lines);
        for (int size = 0; size < SIZES; size++) {
            fprintf(out, " %llu", (unsigned long long)of->fetched[i].accesses[size]);
        }
        fprintf(out, "\n");
    }
}

static void on_end(FILE *out) {
    for (int i = 0; i <= OUTSIDE; i++) {
        if (work[i].is_there && i != OUTSIDE) {
            fprintf(out, "%d %llu\n", i, (unsigned long long)work[i].instructions);
        }
        total += work[i].instructions;
    }
    if (operator_running >= 0) {
        fprintf(out, "running %d\n", operator_running);
    }
    fprintf(out, "invokes %llu\ntotal %llu\n", (unsigned long long)invokes,
            (unsigned long long)total);
    for (int i = 0; i < block_count; i++) {
        write_block(out, blocks[i]);
    }
    for (int i = 0; i <= OUTSIDE; i++) {
        write_work(out, i);
    }
}
