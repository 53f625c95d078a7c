/* Executes decoded instructions; see machine.h. Semantics: XS1's and XS2's as the simulator AXE has
 * them (public), the vector unit as kernels/xcore_vpu/nn_vpu_model.h and unit.h have it. */
#include "machine.h"

#include "decode.h"
#include "services.h"
#include "unit.h"

#include <stdlib.h>

#define MAX_REGIONS 8
#define PAGE_BITS 10 /* of addresses whose decoded forms lie together */
#define PAGE_SLOTS (1 << (PAGE_BITS - 1))
#define SPARE 16    /* the register that the low half of a swap writes */
#define LINE_BITS 4 /* of the instruction buffer */

typedef struct {
    uint32_t base, bytes;
    int32_t writable;
    uint8_t *memory;
} region;

/* What is issued at an address: one instruction, or two halves and perhaps the end of a swap. */
typedef struct {
    xs3_decoded at[3];
    uint8_t bytes; /* 0: not decoded yet */
    uint8_t memory, products, vectors;
    uint64_t issues, stalls;
} slot;

struct xs3 {
    uint32_t r[SPARE + 1];
    xs3_unit unit;
    region regions[MAX_REGIONS];
    int32_t count_regions;
    slot **pages[2];      /* by issue mode, of the first 2^32 >> PAGE_BITS pages */
    uint32_t pc, address; /* where it stopped */
    int32_t dual;
    uint32_t line; /* of the instruction buffer; the next one is there, too, if has_next */
    int32_t has_next, has_line;
    int32_t mark, next_mark, invoking; /* of the markers, see follow_marker */
    uint32_t digits, count_digits;
    uint64_t invokes;
    uint64_t piece_began, pieces, longest; /* slots of a call that threads share */
    xs3_counts marks[XS3_MARKS], total;
    xs3_services services;
};

int32_t xs3_abi(void) {
    return XS3_ABI;
}

xs3 *xs3_open(void) {
    xs3 *m = (xs3 *)calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->mark = XS3_MARKS - 1;
    for (int32_t dual = 0; dual < 2; dual++) {
        m->pages[dual] = (slot **)calloc((size_t)1 << (32 - PAGE_BITS), sizeof(slot *));
        if (m->pages[dual] == NULL) {
            xs3_close(m);
            return NULL;
        }
    }
    return m;
}

void xs3_forget(xs3 *m) {
    for (int32_t i = 0; i < m->count_regions; i++) {
        const region *at = &m->regions[i];
        for (uint32_t page = at->base >> PAGE_BITS; page <= (at->base + at->bytes - 1) >> PAGE_BITS;
             page++) {
            for (int32_t dual = 0; dual < 2; dual++) {
                free(m->pages[dual][page]);
                m->pages[dual][page] = NULL;
            }
        }
    }
    memset(m->marks, 0, sizeof(m->marks));
    memset(&m->total, 0, sizeof(m->total));
    m->mark = XS3_MARKS - 1;
    m->has_line = 0;
}

void xs3_close(xs3 *m) {
    if (m->pages[0] != NULL && m->pages[1] != NULL) {
        xs3_forget(m);
    }
    free(m->pages[0]);
    free(m->pages[1]);
    for (int32_t i = 0; i < m->count_regions; i++) {
        free(m->regions[i].memory);
    }
    services_close(&m->services);
    free(m);
}

uint8_t *xs3_map(xs3 *m, uint32_t base, uint32_t bytes, int32_t writable) {
    if (m->count_regions == MAX_REGIONS || bytes == 0 || (base | bytes) & 15 ||
        base + bytes - 1 < base) {
        return NULL;
    }
    for (int32_t i = 0; i < m->count_regions; i++) {
        const region *other = &m->regions[i];
        if (base <= other->base + other->bytes - 1 && other->base <= base + bytes - 1) {
            return NULL;
        }
    }
    uint8_t *memory = (uint8_t *)calloc(1, bytes);
    if (memory != NULL) {
        m->regions[m->count_regions++] = (region){base, bytes, writable, memory};
    }
    return memory;
}

void xs3_choose(xs3 *m, int32_t readings) {
    m->unit.rounds = (readings & XS3_VLASHR_ROUNDS) != 0;
    m->unit.saturates = (readings & XS3_VLMACCR_SATURATES) != 0;
}

uint32_t *xs3_registers(xs3 *m) {
    return m->r;
}

uint8_t *xs3_unit_state(xs3 *m) {
    return (uint8_t *)&m->unit.v;
}

void xs3_where(const xs3 *m, uint32_t *pc, int32_t *dual, uint32_t *address) {
    *pc = m->pc;
    *dual = m->dual;
    *address = m->address;
}

const xs3_counts *xs3_count(const xs3 *m, int32_t mark) {
    return mark < 0 ? &m->total : &m->marks[mark % XS3_MARKS];
}

void xs3_count_at(const xs3 *m, uint32_t pc, int32_t dual, uint64_t *issues, uint64_t *stalls) {
    const slot *page = m->pages[dual != 0][pc >> PAGE_BITS];
    const slot *at = page == NULL ? NULL : &page[(pc & ((1U << PAGE_BITS) - 1)) >> 1];
    *issues = at == NULL ? 0 : at->issues;
    *stalls = at == NULL ? 0 : at->stalls;
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint8_t *find_far(const xs3 *m, uint32_t address, uint32_t bytes, int32_t writes) {
    for (int32_t i = 0; i < m->count_regions; i++) {
        const region *at = &m->regions[i];
        if (address - at->base < at->bytes && at->bytes - (address - at->base) >= bytes) {
            return writes && !at->writable ? NULL : at->memory + (address - at->base);
        }
    }
    return NULL;
}

/* Where the machine's memory lies here; NULL where there is none. The first region is looked at
 * first. */
static inline uint8_t *find(const xs3 *m, uint32_t address, uint32_t bytes, int32_t writes) {
    const region *first = &m->regions[0];
    if (address - first->base < first->bytes - bytes && first->writable) {
        return first->memory + (address - first->base);
    }
    return find_far(m, address, bytes, writes);
}

uint8_t *xs3_find(const xs3 *m, uint32_t address, uint32_t bytes, int32_t writes) {
    return find_far(m, address, bytes, writes);
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* Puts two halves into an order in which neither reads what the other one has written. */
static void order_halves(slot *s, const xs3_decoded *low, const xs3_decoded *high) {
    const int low_first = (xs3_touched(low, 1) & xs3_touched(high, 0)) == 0;
    const int high_first = (xs3_touched(high, 1) & xs3_touched(low, 0)) == 0;
    if (low_first || high_first) {
        s->at[0] = low_first ? *low : *high;
        s->at[1] = low_first ? *high : *low;
        s->at[0].more = 1;
        return;
    }
    s->at[0] = *low;
    s->at[1] = *high;
    s->at[0].more = s->at[1].more = 1;
    s->at[0].a = SPARE;
    s->at[2].op = XS3_OP_MOVE;
    s->at[2].a = low->a;
}

/* A register that an operand names explicitly is renamed in swaps: r11 of LDAP and sp of EXTSP,
 * too. */
static void name_hidden_target(xs3_decoded *it) {
    switch (it->op) {
    case XS3_OP_LDAPF_U10:
    case XS3_OP_LDAPB_U10:
    case XS3_OP_LDAWCP_U6:
    case XS3_OP_LDWCP_U10:
    case XS3_OP_GETID_0R:
        it->a = 11;
        break;
    case XS3_OP_EXTSP_U6:
        it->a = XS3_SP;
        break;
    case XS3_OP_EXTDP_U6:
        it->a = XS3_DP;
        break;
    default:
        break;
    }
}

static int decode(const xs3 *m, slot *s, uint32_t pc, int32_t dual) {
    const uint8_t *code = find_far(m, pc, 2, 0);
    if (code == NULL || (pc & (dual ? 3 : 1)) != 0) {
        return XS3_ILLEGAL_PC;
    }
    const uint8_t *rest = find_far(m, pc, 4, 0);
    const uint32_t low = (uint32_t)(code[0] | code[1] << 8);
    const uint32_t high = rest == NULL ? 0xffff : (uint32_t)(rest[2] | rest[3] << 8);
    xs3_decoded first, second;
    xs3_clear(&s->at[2]);
    if (xs3_is_long(low)) {
        if (rest == NULL || !xs3_decode_long(low, high, &s->at[0])) {
            return XS3_ILLEGAL_INSTRUCTION;
        }
        name_hidden_target(&s->at[0]);
        s->bytes = 4;
    } else if (!xs3_decode_short(low, &first)) {
        return XS3_ILLEGAL_INSTRUCTION;
    } else if (!dual) {
        s->at[0] = first;
        name_hidden_target(&s->at[0]);
        s->bytes = 2;
    } else {
        if (rest == NULL || !xs3_decode_short(high, &second)) {
            return XS3_ILLEGAL_INSTRUCTION;
        }
        name_hidden_target(&first);
        name_hidden_target(&second);
        if (first.op == XS3_OP_NOP_0R) {
            s->at[0] = second;
        } else if (second.op == XS3_OP_NOP_0R) {
            s->at[0] = first;
        } else {
            order_halves(s, &first, &second);
        }
        s->bytes = 4;
    }
    if (!dual && s->at[0].op == XS3_OP_ADD_2RUS && s->at[0].a == s->at[0].b &&
        s->at[0].number == 0 && s->at[0].a < 8) {
        s->at[0].op = XS3_OP_MARKER;
    }
    s->memory = s->products = s->vectors = 0;
    for (int32_t i = 0; i < 3 && s->at[i].op != XS3_OP_UNKNOWN && s->at[i].op < XS3_OP_MOVE; i++) {
        s->memory |= (uint8_t)xs3_has_trait(&s->at[i], 'M');
        s->vectors = (uint8_t)(s->vectors + xs3_has_trait(&s->at[i], 'V'));
        s->products |= s->at[i].op == XS3_OP_VLMACC || s->at[i].op == XS3_OP_VLMACCR ||
                       s->at[i].op == XS3_OP_VLMACCR1;
    }
    return 0;
}

int32_t xs3_decode(uint32_t word, int32_t is_long, uint32_t operands[7]) {
    xs3_decoded it;
    const int known =
        is_long ? xs3_decode_long(word & 0xffff, word >> 16, &it) : xs3_decode_short(word, &it);
    const uint8_t places[6] = {it.a, it.b, it.c, it.d, it.e, it.f};
    for (int32_t i = 0; i < 6; i++) {
        operands[i] = places[i];
    }
    operands[6] = it.number;
    return known ? it.op : 0;
}

static slot *new_page(xs3 *m, uint32_t pc, int32_t dual) {
    return m->pages[dual][pc >> PAGE_BITS] = (slot *)calloc(PAGE_SLOTS, sizeof(slot));
}

/* ---- instruction fetch --------------------------------------------------------------------- */

/* FNOPs before an instruction at pc. The buffer has a line of 16 bytes and perhaps the one behind
 * it. */
static inline uint32_t fetch(xs3 *m, uint32_t pc, uint32_t bytes) {
    const uint32_t first = pc >> LINE_BITS, last = (pc + bytes - 1) >> LINE_BITS;
    uint32_t stalls = 0;
    if (!m->has_line || first != m->line) {
        if (!m->has_line || first != m->line + 1 || !m->has_next) {
            stalls++;
        }
        m->line = first;
        m->has_line = 1;
        m->has_next = 0;
    }
    if (last != first && !m->has_next) {
        stalls++;
        m->has_next = 1;
    }
    return stalls;
}

/* What an issue without data memory brings: the target's line if it branches, else the next one. */
static inline void prefetch(xs3 *m, uint32_t next, int32_t branches) {
    if (!branches) {
        m->has_next = 1;
        return;
    }
    const uint32_t line = next >> LINE_BITS;
    if (line != m->line && !(line == m->line + 1 && m->has_next)) {
        m->line = line;
        m->has_next = 0;
    }
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static inline uint32_t shl(uint32_t value, uint32_t bits) {
    return bits > 31 ? 0 : value << bits;
}

static inline uint32_t shr(uint32_t value, uint32_t bits) {
    return bits > 31 ? 0 : value >> bits;
}

static inline uint32_t ashr(uint32_t value, uint32_t bits) {
    return (uint32_t)((int32_t)value >> (bits > 31 ? 31 : bits));
}

/* A negative number of places shifts to the right, with the sign: the vendor's code relies on it.
 */
static inline uint32_t shl_signed(uint32_t value, int32_t bits) {
    return bits < 0 ? ashr(value, 0U - (uint32_t)bits) : shl(value, (uint32_t)bits);
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline uint32_t mask_of(uint32_t bits) {
    return bits > 31 ? 0xffffffffU : (1U << bits) - 1;
}

static inline uint32_t sext(uint32_t value, uint32_t bits) {
    return bits == 0 || bits > 31 ? value
                                  : (uint32_t)((int32_t)(value << (32 - bits)) >> (32 - bits));
}

static inline uint32_t zext(uint32_t value, uint32_t bits) {
    return bits == 0 ? value : value & mask_of(bits);
}

static inline uint32_t bitrev(uint32_t x) {
    x = (x >> 1 & 0x55555555U) | (x & 0x55555555U) << 1;
    x = (x >> 2 & 0x33333333U) | (x & 0x33333333U) << 2;
    x = (x >> 4 & 0x0f0f0f0fU) | (x & 0x0f0f0f0fU) << 4;
    return __builtin_bswap32(x);
}

static uint32_t crc(uint32_t sum, uint32_t data, uint32_t polynomial, int32_t bits) {
    for (int32_t i = 0; i < bits; i++, data >>= 1) {
        const uint32_t out = sum & 1;
        sum = sum >> 1 | (data & 1) << 31;
        sum ^= out ? polynomial : 0;
    }
    return sum;
}

/* Bits of two words in turn, groups of 2^log: those of `low` first. */
static void zip(uint32_t *high, uint32_t *low, uint32_t log) {
    const uint32_t group = 1U << log;
    uint64_t out = 0;
    for (uint32_t i = 0; i < 32; i += group) {
        const uint64_t h = *high >> i & mask_of(group), l = *low >> i & mask_of(group);
        out |= (h << group | l) << 2 * i;
    }
    *high = (uint32_t)(out >> 32);
    *low = (uint32_t)out;
}

static void unzip(uint32_t *high, uint32_t *low, uint32_t log) {
    const uint32_t group = 1U << log;
    const uint64_t in = (uint64_t)*high << 32 | *low;
    uint32_t h = 0, l = 0;
    for (uint32_t i = 0; i < 32; i += group) {
        l |= (uint32_t)(in >> 2 * i & mask_of(group)) << i;
        h |= (uint32_t)(in >> (2 * i + group) & mask_of(group)) << i;
    }
    *high = h;
    *low = l;
}

static void lsats(uint32_t *high, uint32_t *low, uint32_t bits) {
    if (bits == 0 || bits > 31) {
        return;
    }
    const int32_t sign = (int32_t)*high >> 31;
    if ((int32_t)*high >> (bits - 1) != sign) {
        *high = sign ? 0xffffffffU << (bits - 1) : ~(0xffffffffU << (bits - 1));
        *low = (uint32_t)~sign;
    }
}

/* ---- execution ----------------------------------------------------------------------------- */

#define STOP(why)                                                                                  \
    do {                                                                                           \
        stop = (why);                                                                              \
        goto stopped;                                                                              \
    } while (0)
#define AT(place, address_, bytes, writes)                                                         \
    do {                                                                                           \
        const uint32_t where = (address_);                                                         \
        (place) = find(m, where, bytes, writes);                                                   \
        if ((place) == NULL || (where & ((bytes) > 8 ? 3 : (bytes) - 1)) != 0) {                   \
            m->address = where;                                                                    \
            STOP(XS3_LOAD_STORE);                                                                  \
        }                                                                                          \
    } while (0)
#define LOAD32(to, address_)                                                                       \
    do {                                                                                           \
        AT(p, address_, 4, 0);                                                                     \
        memcpy(&word, p, 4);                                                                       \
        (to) = word;                                                                               \
    } while (0)
#define STORE32(address_, from)                                                                    \
    do {                                                                                           \
        word = (from);                                                                             \
        AT(p, address_, 4, 1);                                                                     \
        memcpy(p, &word, 4);                                                                       \
    } while (0)
#define LOAD64(low, high, address_)                                                                \
    do {                                                                                           \
        AT(p, address_, 8, 0);                                                                     \
        memcpy(pair, p, 8);                                                                        \
        (low) = pair[0];                                                                           \
        (high) = pair[1];                                                                          \
    } while (0)
#define STORE64(address_, low, high)                                                               \
    do {                                                                                           \
        pair[0] = (low);                                                                           \
        pair[1] = (high);                                                                          \
        AT(p, address_, 8, 1);                                                                     \
        memcpy(p, pair, 8);                                                                        \
    } while (0)
#define VECTOR(address_, writes) AT(p, address_, 32, writes)
#define GO(target)                                                                                 \
    do {                                                                                           \
        next = (target);                                                                           \
        branches = 1;                                                                              \
    } while (0)
#define GO_TO_WORD(value)                                                                          \
    do {                                                                                           \
        const uint32_t to = (value);                                                               \
        GO(to & ~1U);                                                                              \
        next_dual = (int32_t)(to & 1);                                                             \
    } while (0)
#define LINK() (after | (uint32_t)dual)
#define OPS(name) case XS3_OP_##name:

static void add_marks(xs3 *m) {
    memset(&m->total, 0, sizeof(m->total));
    for (int32_t k = 0; k < XS3_MARKS; k++) {
        m->total.issues += m->marks[k].issues;
        m->total.stalls += m->marks[k].stalls;
        m->total.vectors += m->marks[k].vectors;
        m->total.products += m->marks[k].products;
        m->total.idle += m->marks[k].idle;
    }
    m->total.runs = m->invokes;
}

static void set_mark(xs3 *m, int32_t mark) {
    m->mark = mark;
    m->marks[mark].runs++;
}

/* A digit of nn_profile.h's markers; three of them are a code. Only what an invoke runs is counted
 * by operator, all else has the last mark. */
static void follow_marker(xs3 *m, uint32_t digit) {
    m->digits = m->digits << 3 | digit;
    if (++m->count_digits < 3) {
        return;
    }
    const uint32_t code = m->digits;
    m->digits = m->count_digits = 0;
    if (code < 0x40) {
        m->next_mark = (int32_t)code;
        if (m->invoking) {
            set_mark(m, m->next_mark);
        }
    } else if (code < 0x80) {
        if (m->invoking) { /* the upper digits follow: the first mark was not meant */
            m->marks[m->mark].runs--;
            set_mark(m, m->next_mark | (int32_t)(code & 63) << 6);
        }
    } else {
        m->mark = XS3_MARKS - 1;
        m->invoking = code == 0x81 ? 1 : code == 0x82 ? 0 : m->invoking;
        m->invokes += code == 0x82;
    }
}

/* The pieces of a call run one after the other; the call takes as long as its longest. */
static void follow_pieces(xs3 *m, uint32_t event) {
    const uint64_t now = m->marks[m->mark].issues;
    if (event == 0) {
        m->pieces = m->longest = 0;
    } else if (event == 1) {
        m->piece_began = now;
    } else if (event == 2) {
        const uint64_t own = now - m->piece_began;
        m->pieces += own;
        m->longest = own > m->longest ? own : m->longest;
    } else {
        m->marks[m->mark].idle += m->pieces - m->longest;
    }
}

int32_t xs3_run(xs3 *m, uint32_t pc, uint64_t limit) {
    uint32_t *const r = m->r;
    xs3_unit *const u = &m->unit;
    nn_vpu *const v = &u->v;
    int32_t dual = (int32_t)(pc & 1), next_dual, stop = XS3_RUNNING;
    uint32_t next = pc & ~1U, after, word, pair[2];
    uint64_t left = limit;
    uint8_t *p;
    int32_t branches;
    for (;;) {
        pc = next;
        if (pc == XS3_RETURN) {
            stop = XS3_RETURNED;
            break;
        }
        if (left == 0) {
            stop = XS3_LIMIT;
            break;
        }
        slot *s = m->pages[dual][pc >> PAGE_BITS];
        if (s == NULL && (s = new_page(m, pc, dual)) == NULL) {
            stop = XS3_NO_MEMORY;
            break;
        }
        s += (pc & ((1U << PAGE_BITS) - 1)) >> 1;
        if (s->bytes == 0 && (stop = decode(m, s, pc, dual)) != 0) {
            break;
        }
        left--;
        s->issues++;
        const uint32_t stalls = fetch(m, pc, s->bytes);
        s->stalls += stalls;
        xs3_counts *const counts = &m->marks[m->mark];
        counts->issues++;
        counts->stalls += stalls;
        counts->vectors += s->vectors;
        counts->products += s->products;
        after = next = pc + s->bytes;
        next_dual = dual;
        branches = 0;
        const uint32_t scale = dual ? 4 : 2;
        const xs3_decoded *i = s->at;
    again:
        switch ((enum xs3_op)i->op) {
        case XS3_OP_MOVE:
            r[i->a] = r[SPARE];
            break;
        case XS3_OP_MARKER: /* takes no slot: the chip's own code has none */
            counts->issues--;
            counts->stalls -= stalls;
            follow_marker(m, i->a);
            break;
#include "semantics.h"
        case XS3_OP_UNKNOWN:
        case XS3_OPS:
            STOP(XS3_ILLEGAL_INSTRUCTION);
        }
        if (i->more) {
            i++;
            goto again;
        }
        if (!s->memory) {
            prefetch(m, next, branches);
        }
        dual = next_dual;
    }
stopped:
    fflush(stdout);
    m->pc = pc;
    m->dual = dual;
    add_marks(m);
    return stop;
}
