/*
 * The replay of steps on a model of the arena.
 *
 * Every byte of the arena has a tag: the tensor and the byte of it that was written there last.
 * Each step checks that its reads find the right bytes, then overwrites the bytes that it writes.
 * The bytes of large tensors have no tags of their own: a block of BLOCK bytes has one number where
 * its tags follow each other or are all the same.
 *
 * No global state, no allocation: the caller provides all memory. Sizes, offsets and addresses are
 * in bytes of the arena.
 */
#include <stddef.h>
#include <stdint.h>

#define REPLAY_ABI 7

/* All structures are tables of 64-bit numbers; replay.py fills them in. Tags have 32 bits. */
struct replay_tensor {
    int64_t offset; /* of its buffer; -1 without a buffer */
    int64_t kept_rows, kept_columns;
    int64_t contiguous; /* whether its buffer holds all of it */
    int64_t pitch; /* of some channels of a wider tensor: bytes from a pixel to the next, or 0 */
    int64_t first; /* of these: the first channel's byte in a pixel of the wider tensor */
    int64_t held;  /* bytes of its buffer */
    int64_t batch, height, width, channels, pixel, size;
    int64_t tag; /* of its first byte */
};

struct replay_taps {
    int64_t size, extent, stride; /* stride 0: each output's first and end are in `spans` */
    int64_t pad;                  /* or where these begin */
};

struct replay_read {
    int64_t tensor;
    int64_t is_window; /* else the whole tensor is read */
    struct replay_taps rows, columns;
};

struct replay_area {
    int64_t offset, size; /* size -1: no area */
    int64_t tag;          /* of all its bytes */
};

/* An input of an operator that copies one part after the other. */
struct replay_part {
    int64_t tensor; /* -1: it is not in the arena */
    int64_t line;   /* bytes */
};

struct replay_operator {
    int64_t first_read, end_read, first_output, end_output; /* in the lists of reads and outputs */
    int64_t by_row, by_element, sums_up, makes_planes;
    int64_t first_part, end_part, lines; /* of its output, where it copies parts */
    struct replay_area scratch, sums, constants;
    int64_t held, held_size; /* bytes of the last rows of its output that are kept; size -1: none */
    int64_t kept;            /* rows */
    int64_t
        outside; /* columns of them outside of the window, if it swaps with them; -1: it copies */
};

struct replay_step {
    int32_t op, y0, y1, x0, x1;
};

struct replay_model {
    uint32_t *tags;  /* of the bytes of blocks that are MIXED */
    int64_t *blocks; /* above 0: the tag of the first byte, others follow; else -tag of all bytes */
    int64_t size;    /* of the arena */
    const struct replay_tensor *tensors;
    const struct replay_operator *operators;
    const struct replay_read *reads;
    const int64_t *outputs; /* tensors */
    const int64_t *spans;   /* see replay_taps */
    const struct replay_part *parts;
    int64_t source; /* the tensor whose rows are delivered */
    int64_t *turns; /* operator -> how often it has begun a row */
    int64_t *fault; /* the error: a kind, a tensor, and its place: rows or bytes [2] to [3] */
};

/* Kinds of faults; replay.py has the words. */
enum {
    ROWS_MISSING,
    BYTES_MISSING,
    WRITES_OUTSIDE,
    NO_BUFFER,
    HITS_READ,
    HITS_SCRATCH,
    NO_CONSTANTS,
    NO_SUMS,
    SUMS_LOST,
    AREA_OUTSIDE
};

/* Stores the fault and returns 0. */
static int fails(const struct replay_model *m, int64_t kind, int64_t tensor, int64_t first,
                 int64_t end) {
    const int64_t fault[] = {kind, tensor, first, end};
    for (int i = 0; i < 4; i++) {
        m->fault[i] = fault[i];
    }
    return 0;
}

struct window {
    int64_t y0, y1, x0, x1;
};

struct piece {
    int64_t address, byte, size;
};

/* Goes through the pieces of a window. */
struct walk {
    const struct replay_tensor *tensor;
    struct window window;
    int64_t y, x;
};

static struct walk pieces(const struct replay_tensor *tensor, struct window window) {
    if (tensor->pitch && tensor->batch > 1) { /* always all of it */
        window = (struct window){0, tensor->batch * tensor->height, 0, tensor->width};
    }
    return (struct walk){tensor, window, window.y0, window.x0};
}

/* The next pixel of a tensor that is some channels of another one, as bytes of that one. */
static int next_part(struct walk *walk, struct piece *piece) {
    const struct replay_tensor *t = walk->tensor;
    const struct window *w = &walk->window;
    if (walk->y >= w->y1 || w->x0 >= w->x1) {
        return 0;
    }
    int64_t byte = (walk->y * t->width + walk->x) * t->pitch + t->first;
    *piece = (struct piece){t->offset + byte, byte, t->pixel};
    if (++walk->x >= w->x1) {
        walk->x = w->x0;
        walk->y++;
    }
    return 1;
}

static int next_piece(struct walk *walk, struct piece *piece) {
    const struct replay_tensor *t = walk->tensor;
    const struct window *w = &walk->window;
    int whole_rows = w->x0 == 0 && w->x1 == t->width;
    if (t->pitch) {
        return next_part(walk, piece);
    }
    if (t->contiguous && (t->batch > 1 || (whole_rows && w->y0 == 0 && w->y1 == t->height))) {
        *piece = (struct piece){t->offset, 0, t->size};
        return walk->y++ == w->y0;
    }
    if (walk->y >= w->y1 || w->x0 >= w->x1) {
        return 0;
    }
    int64_t y = walk->y, x = walk->x, ring_y = y % t->kept_rows, row = t->kept_columns * t->pixel;
    if (whole_rows && t->kept_columns == t->width) {
        int64_t left = t->kept_rows - ring_y, count = w->y1 - y < left ? w->y1 - y : left;
        *piece = (struct piece){t->offset + ring_y * row, y * row, count * row};
        walk->y += count;
        return 1;
    }
    int64_t ring_x = x % t->kept_columns, left = t->kept_columns - ring_x;
    int64_t count = w->x1 - x < left ? w->x1 - x : left;
    *piece = (struct piece){t->offset + ring_y * row + ring_x * t->pixel,
                            (y * t->width + x) * t->pixel, count * t->pixel};
    walk->x += count;
    if (walk->x >= w->x1) {
        walk->x = w->x0;
        walk->y++;
    }
    return 1;
}

static int inside(const struct replay_model *m, int64_t address, int64_t size) {
    return address >= 0 && size >= 0 && address <= m->size && size <= m->size - address;
}

enum { BLOCK = 64 };
static const int64_t MIXED = INT64_MIN;

static uint32_t tag_in(int64_t block, int64_t byte) {
    return (uint32_t)(block > 0 ? block + byte : -block);
}

static uint32_t tag_at(const struct replay_model *m, int64_t address) {
    int64_t block = m->blocks[address / BLOCK];
    return block == MIXED ? m->tags[address] : tag_in(block, address % BLOCK);
}

/* Gives each byte of a block a tag of its own. */
static void spread(const struct replay_model *m, int64_t number) {
    int64_t block = m->blocks[number];
    for (int64_t i = 0; block != MIXED && i < BLOCK; i++) {
        m->tags[number * BLOCK + i] = tag_in(block, i);
    }
    m->blocks[number] = MIXED;
}

/* The end of the bytes of [address, end) that lie in the first one's block. */
static int64_t block_end(int64_t address, int64_t end) {
    int64_t next = (address / BLOCK + 1) * BLOCK;
    return next < end ? next : end;
}

/* Sets tags that follow each other (`step` 1) or are all the same (0). */
static void set_tags(const struct replay_model *m, int64_t address, int64_t size, int64_t tag,
                     int64_t step) {
    int64_t end = address + size, stop;
    for (; address < end; tag += step * (stop - address), address = stop) {
        stop = block_end(address, end);
        if (stop - address == BLOCK) {
            m->blocks[address / BLOCK] = step ? tag : -tag;
            continue;
        }
        spread(m, address / BLOCK);
        uint32_t *there = m->tags + address;
        for (int64_t i = 0; i < stop - address; i++) {
            there[i] = (uint32_t)(tag + step * i);
        }
    }
}

/* Whether bytes have the tags that `set_tags` would set. */
static int has_tags(const struct replay_model *m, int64_t address, int64_t size, int64_t tag,
                    int64_t step) {
    int64_t end = address + size, stop;
    uint32_t wrong = 0;
    for (; address < end && !wrong; tag += step * (stop - address), address = stop) {
        stop = block_end(address, end);
        int64_t block = m->blocks[address / BLOCK], last = stop - 1 - address;
        if (block != MIXED) { /* where the first and the last are right, all are */
            wrong = tag_in(block, address % BLOCK) ^ (uint32_t)tag;
            wrong |= tag_in(block, address % BLOCK + last) ^ (uint32_t)(tag + step * last);
            continue;
        }
        const uint32_t *there = m->tags + address;
        for (int64_t i = 0; i <= last; i++) {
            wrong |= there[i] ^ (uint32_t)(tag + step * i);
        }
    }
    return !wrong;
}

static void read_few(const struct replay_model *m, int64_t from, int64_t size, uint32_t *tags) {
    for (int64_t i = 0; i < size; i++) {
        tags[i] = tag_at(m, from + i);
    }
}

/* Sets the tags of at most BLOCK bytes of one block. */
static void write_few(const struct replay_model *m, const uint32_t *tags, int64_t to,
                      int64_t size) {
    int follow = 1, alike = 1;
    for (int64_t i = 0; i < size; i++) {
        follow &= tags[i] == tags[0] + (uint32_t)i;
        alike &= tags[i] == tags[0];
    }
    if (follow || alike) {
        set_tags(m, to, size, tags[0], !alike);
        return;
    }
    spread(m, to / BLOCK);
    for (int64_t i = 0; i < size; i++) {
        m->tags[to + i] = tags[i];
    }
}

/* Copies bytes inside the arena, which may overlap, as memmove does. */
static void copy_tags(const struct replay_model *m, int64_t from, int64_t to, int64_t size) {
    int64_t first = to / BLOCK, last = (to + size + BLOCK - 1) / BLOCK - 1;
    for (int64_t k = 0; k <= last - first; k++) {
        int64_t begin = (to <= from ? first + k : last - k) * BLOCK;
        int64_t end = begin + BLOCK < to + size ? begin + BLOCK : to + size;
        begin = begin > to ? begin : to;
        uint32_t tags[BLOCK];
        read_few(m, begin - to + from, end - begin, tags);
        write_few(m, tags, begin, end - begin);
    }
}

/* The bytes at `held` go to `in`, after those at `out` have taken their place; -1: none. */
static void swap_tags(const struct replay_model *m, int64_t held, int64_t out, int64_t in,
                      int64_t size) {
    for (int64_t i = 0, count; i < size; i += count) {
        uint32_t tags[BLOCK];
        count = block_end(in < 0 ? held + i : in + i, (in < 0 ? held : in) + size);
        count -= in < 0 ? held + i : in + i;
        read_few(m, held + i, count, tags);
        copy_tags(m, out + i, held + i, count);
        if (in >= 0) {
            write_few(m, tags, in + i, count);
        }
    }
}

static int write_piece(const struct replay_model *m, int64_t tensor, struct piece p) {
    if (!inside(m, p.address, p.size)) {
        return fails(m, WRITES_OUTSIDE, tensor, 0, 0);
    }
    set_tags(m, p.address, p.size, m->tensors[tensor].tag + p.byte, 1);
    return 1;
}

static int holds_piece(const struct replay_model *m, int64_t tensor, struct piece p) {
    return inside(m, p.address, p.size) &&
           has_tags(m, p.address, p.size, m->tensors[tensor].tag + p.byte, 1);
}

static int has_buffer(const struct replay_model *m, int64_t tensor) {
    return m->tensors[tensor].held >= 0 || fails(m, NO_BUFFER, tensor, 0, 0);
}

static int write_window(const struct replay_model *m, int64_t tensor, struct window window) {
    struct walk walk = pieces(&m->tensors[tensor], window);
    struct piece p;
    if (!has_buffer(m, tensor)) {
        return 0;
    }
    while (next_piece(&walk, &p)) {
        if (!write_piece(m, tensor, p)) {
            return 0;
        }
    }
    return 1;
}

static int holds_window(const struct replay_model *m, int64_t tensor, struct window window) {
    struct walk walk = pieces(&m->tensors[tensor], window);
    struct piece p;
    if (!has_buffer(m, tensor)) {
        return 0;
    }
    while (next_piece(&walk, &p)) {
        if (!holds_piece(m, tensor, p)) {
            return fails(m, ROWS_MISSING, tensor, window.y0, window.y1);
        }
    }
    return 1;
}

static int own(const struct replay_model *m, const struct replay_area *area) {
    if (!inside(m, area->offset, area->size)) {
        return 0;
    }
    set_tags(m, area->offset, area->size, area->tag, 0);
    return 1;
}

static int owns(const struct replay_model *m, const struct replay_area *area) {
    return inside(m, area->offset, area->size) &&
           has_tags(m, area->offset, area->size, area->tag, 0);
}

static struct window whole(const struct replay_tensor *t) {
    return (struct window){0, t->height, 0, t->width};
}

/* The input elements [*first, *end) that output elements [from, to) read. */
static void tap(const struct replay_model *m, const struct replay_taps *taps, int64_t from,
                int64_t to, int64_t *first, int64_t *end) {
    if (!taps->stride) {
        *first = taps->size;
        *end = 0;
        for (int64_t q = from; q < to; q++) {
            const int64_t *span = m->spans + taps->pad + 2 * q;
            *first = span[0] < *first ? span[0] : *first;
            *end = span[1] > *end ? span[1] : *end;
        }
        return;
    }
    /* Outputs that read something: those before and after lie in the padding. */
    int64_t least = taps->pad < taps->extent ? 0 : (taps->pad - taps->extent) / taps->stride + 1;
    int64_t most = (taps->size + taps->pad - 1) / taps->stride;
    from = from < least ? least : from;
    to = to - 1 < most ? to : most + 1;
    int64_t low = from * taps->stride - taps->pad;
    int64_t high = (to - 1) * taps->stride - taps->pad + taps->extent;
    *first = low > 0 ? low : 0;
    *end = high < taps->size ? high : taps->size;
}

static struct window read_window(const struct replay_model *m, const struct replay_read *read,
                                 struct window made) {
    struct window found = whole(&m->tensors[read->tensor]);
    if (read->is_window) {
        tap(m, &read->rows, made.y0, made.y1, &found.y0, &found.y1);
        tap(m, &read->columns, made.x0, made.x1, &found.x0, &found.x1);
    }
    return found;
}

/* Whether each element of `in` is read before it is written, by a kernel that reads element i first
   and then writes it. The last element with one behind it is the worst where the output's are
   larger. */
static int read_first(struct piece out, int64_t out_element, struct piece in, int64_t in_element) {
    int64_t made = out.address - out.byte, read = in.address - in.byte;
    if (out_element <= in_element) {
        return made <= read;
    }
    int64_t first = in.byte / in_element, end = (in.byte + in.size) / in_element - 1;
    if (end > (out.byte + out.size) / out_element) {
        end = (out.byte + out.size) / out_element;
    }
    return end <= out.byte / out_element ||
           made + end * out_element <= read + (end > first ? end : first) * in_element;
}

/* Whether a step's writes hit its reads in a way that its kernel does not allow. */
static int collides(const struct replay_model *m, const struct replay_operator *op, int64_t output,
                    struct window made, int64_t source, struct window read) {
    const struct replay_tensor *a = &m->tensors[output], *b = &m->tensors[source];
    int alike = a->batch == b->batch && a->height == b->height && a->width == b->width &&
                a->channels == b->channels;
    struct walk outer = pieces(a, made);
    struct piece out, in;
    while (next_piece(&outer, &out)) {
        struct walk inner = pieces(b, read);
        while (next_piece(&inner, &in)) {
            if (out.address < in.address + in.size && in.address < out.address + out.size) {
                if (!op->by_element || !alike ||
                    !read_first(out, a->pixel / a->channels, in, b->pixel / b->channels)) {
                    return 1;
                }
            }
        }
    }
    return 0;
}

static int reads_are_there(const struct replay_model *m, const struct replay_operator *op,
                           struct window made) {
    for (int64_t r = op->first_read; r < op->end_read; r++) {
        const struct replay_read *read = &m->reads[r];
        struct window window = read_window(m, read, made);
        if (window.y0 >= window.y1 || window.x0 >= window.x1) {
            continue;
        }
        if (!holds_window(m, read->tensor, window)) {
            return 0;
        }
        for (int64_t o = op->first_output; o < op->end_output; o++) {
            if (!has_buffer(m, m->outputs[o])) {
                return 0;
            }
            if (collides(m, op, m->outputs[o], made, read->tensor, window)) {
                return fails(m, HITS_READ, read->tensor, 0, 0);
            }
        }
    }
    return 1;
}

static int compute_at_once(const struct replay_model *m, const struct replay_operator *op,
                           struct window made, int is_streamed) {
    if (!reads_are_there(m, op, made)) {
        return 0;
    }
    for (int64_t o = op->first_output; o < op->end_output; o++) {
        int64_t t = m->outputs[o];
        struct window all = whole(&m->tensors[t]);
        if (!write_window(m, t, is_streamed || op->by_row ? made : all)) {
            return 0;
        }
    }
    return 1;
}

static int compute(const struct replay_model *m, const struct replay_operator *op,
                   struct window made, int is_streamed) {
    if (!op->by_row) {
        return compute_at_once(m, op, made, is_streamed);
    }
    for (int64_t y = made.y0; y < made.y1; y++) {
        struct window row = {y, y + 1, made.x0, made.x1};
        if (!compute_at_once(m, op, row, is_streamed)) {
            return 0;
        }
    }
    return 1;
}

static int add_up(const struct replay_model *m, const struct replay_operator *op,
                  struct window part) {
    if (op->sums.size < 0 || op->first_read == op->end_read) {
        return fails(m, NO_SUMS, 0, 0, 0);
    }
    int64_t input = m->reads[op->first_read].tensor, output = m->outputs[op->first_output];
    struct window all = whole(&m->tensors[input]);
    int is_first = part.y0 == 0 && part.x0 == 0;
    int is_last = part.y1 == all.y1 && part.x1 == all.x1;
    if (!holds_window(m, input, part)) {
        return 0;
    }
    if (!is_first && !owns(m, &op->sums)) {
        return fails(m, SUMS_LOST, 0, 0, 0);
    }
    if (!own(m, &op->sums)) {
        return fails(m, AREA_OUTSIDE, 0, 0, 0);
    }
    return !is_last || write_window(m, output, whole(&m->tensors[output]));
}

/* Copies the channels of some pixels to their planes in the output. */
static int scatter(const struct replay_model *m, const struct replay_operator *op,
                   struct window part) {
    int64_t input = m->reads[op->first_read].tensor, output = m->outputs[op->first_output];
    const struct replay_tensor *in = &m->tensors[input];
    int64_t element = in->pixel / in->channels, size = (part.x1 - part.x0) * element;
    if (!holds_window(m, input, part) || !has_buffer(m, output)) {
        return 0;
    }
    int64_t rows = part.y1 - part.y0;
    for (int64_t i = 0; i < in->channels * rows; i++) {
        int64_t row = i / rows * in->height + part.y0 + i % rows; /* of all planes */
        int64_t byte = (row * in->width + part.x0) * element;
        if (!write_piece(m, output, (struct piece){m->tensors[output].offset + byte, byte, size})) {
            return 0;
        }
    }
    return holds_window(m, input, part) || fails(m, HITS_READ, input, 0, 0);
}

/* Copies one part after the other, each line by line. The output consists of lines, each with a
   line of every part, one behind the other. */
static int concatenate(const struct replay_model *m, const struct replay_operator *op) {
    int64_t result = m->outputs[op->first_output], width = 0, column = 0;
    const struct replay_tensor *output = &m->tensors[result];
    if (!has_buffer(m, result)) {
        return 0;
    }
    for (int64_t k = op->first_part; k < op->end_part; k++) {
        width += m->parts[k].line;
    }
    for (int64_t k = op->first_part; k < op->end_part; k++) {
        int64_t t = m->parts[k].tensor, line = m->parts[k].line, together = op->lines;
        if (t >= 0) {
            const struct replay_tensor *source = &m->tensors[t];
            if (!has_buffer(m, t)) {
                return 0;
            }
            if (output->offset < source->offset + source->held &&
                source->offset < output->offset + output->held) {
                together = 1; /* writes may hit bytes that are still to be read */
            }
        }
        for (int64_t first = 0; first < op->lines; first += together) {
            if (t >= 0) {
                int64_t byte = first * line, size = together * line;
                struct piece read = {m->tensors[t].offset + byte, byte, size};
                if (!holds_piece(m, t, read)) {
                    return fails(m, BYTES_MISSING, t, byte, byte + size);
                }
            }
            for (int64_t n = first; n < first + together; n++) {
                int64_t byte = n * width + column;
                if (!write_piece(m, result, (struct piece){output->offset + byte, byte, line})) {
                    return 0;
                }
            }
        }
        column += line;
    }
    return 1;
}

/* Copies rows of an operator's output between their lines and their window. */
static int copy_lines(const struct replay_model *m, const struct replay_operator *op,
                      struct window rows, int back) {
    int64_t tensor = m->outputs[op->first_output];
    const struct replay_tensor *t = &m->tensors[tensor];
    struct walk walk = pieces(t, rows);
    struct piece p;
    if (!has_buffer(m, tensor)) {
        return 0;
    }
    while (next_piece(&walk, &p)) {
        int64_t row = t->width * t->pixel, count;
        for (int64_t i = 0; i < p.size; i += count) {
            int64_t byte = p.byte + i, line = byte / row % op->kept * row + byte % row;
            int64_t window = p.address + i, held = op->held + line;
            count = row - byte % row < p.size - i ? row - byte % row : p.size - i;
            if (line + count > op->held_size || !inside(m, held, count)) {
                return fails(m, AREA_OUTSIDE, 0, 0, 0);
            }
            if (!inside(m, window, count)) {
                return fails(m, WRITES_OUTSIDE, tensor, 0, 0);
            }
            if (back) {
                copy_tags(m, window, held, count);
            } else {
                copy_tags(m, held, window, count);
            }
        }
    }
    return 1;
}

/* Swaps the kept rows of columns that come into an operator's window with those of the columns that
   leave it. A column that leaves was made in this step, or has the rows of the one before. */
static int swap_lines(const struct replay_model *m, const struct replay_operator *op,
                      struct window made, int64_t turn) {
    int64_t tensor = m->outputs[op->first_output], kept = op->kept;
    const struct replay_tensor *t = &m->tensors[tensor];
    int64_t columns = t->kept_columns, row = columns * t->pixel;
    if (!has_buffer(m, tensor)) {
        return 0;
    }
    for (int64_t x = made.x0; x < made.x1; x++) {
        int64_t place = x % columns, slots = (op->outside + columns - 1 - place) / columns;
        int64_t end = x >= columns ? made.y1 : made.y0;
        if (!slots) {
            continue;
        }
        int64_t slot = place + (x / columns + turn) % slots * columns;
        for (int64_t i = 0; i < kept; i++) {
            int64_t y = made.y0 - kept + i, more = end - made.y0 - i;
            int64_t last = y + (more > 0 ? (more + kept - 1) / kept * kept : 0);
            if (last < 0) {
                continue;
            }
            int64_t line = (last % kept * op->outside + slot) * t->pixel;
            int64_t window = t->offset + place * t->pixel, out = window + last % t->kept_rows * row;
            int64_t in = y < 0 ? -1 : window + y % t->kept_rows * row;
            if (line + t->pixel > op->held_size || !inside(m, op->held + line, t->pixel)) {
                return fails(m, AREA_OUTSIDE, 0, 0, 0);
            }
            if (!inside(m, out, t->pixel) || (y >= 0 && !inside(m, in, t->pixel))) {
                return fails(m, WRITES_OUTSIDE, tensor, 0, 0);
            }
            swap_tags(m, op->held + line, out, in, t->pixel);
        }
    }
    return 1;
}

/* A step of an operator whose last rows are kept: the rows above come from their lines, its own
   ones go there. */
static int compute_in_band(const struct replay_model *m, const struct replay_operator *op,
                           struct window made, int is_streamed) {
    struct window above = made, last = made;
    if (op->outside >= 0) {
        int64_t *turn = &m->turns[op - m->operators];
        *turn += made.x0 == 0;
        return swap_lines(m, op, made, *turn) &&
               (made.y0 >= made.y1 || compute(m, op, made, is_streamed));
    }
    above.y0 = made.y0 > op->kept ? made.y0 - op->kept : 0;
    above.y1 = made.y0;
    last.y0 = made.y1 - op->kept > made.y0 ? made.y1 - op->kept : made.y0;
    return copy_lines(m, op, above, 0) &&
           (made.y0 >= made.y1 || compute(m, op, made, is_streamed)) && copy_lines(m, op, last, 1);
}

static int run_operator(const struct replay_model *m, const struct replay_operator *op,
                        struct window made, int is_streamed) {
    if (is_streamed && op->sums_up) {
        return add_up(m, op, made);
    }
    if (is_streamed && op->makes_planes) {
        return scatter(m, op, made);
    }
    if (!is_streamed && op->first_part < op->end_part) {
        return concatenate(m, op);
    }
    if (is_streamed && op->kept) {
        return compute_in_band(m, op, made, is_streamed);
    }
    return made.y0 >= made.y1 || compute(m, op, made, is_streamed);
}

static int run_step(const struct replay_model *m, const struct replay_step *step, int is_streamed) {
    struct window made = {step->y0, step->y1, step->x0, step->x1};
    if (step->op < 0) {
        return write_window(m, m->source, made);
    }
    const struct replay_operator *op = &m->operators[step->op];
    int has_scratch = op->scratch.size >= 0, has_constants = op->constants.size >= 0;
    if (has_constants && !owns(m, &op->constants)) {
        return fails(m, NO_CONSTANTS, 0, 0, 0);
    }
    if (has_scratch && !own(m, &op->scratch)) {
        return fails(m, AREA_OUTSIDE, 0, 0, 0);
    }
    if (!run_operator(m, op, made, is_streamed)) {
        return 0;
    }
    if (has_scratch && !owns(m, &op->scratch)) {
        return fails(m, HITS_SCRATCH, 0, 0, 0);
    }
    return !(has_constants && !owns(m, &op->constants)) || fails(m, NO_CONSTANTS, 0, 0, 0);
}

int32_t replay_abi(void) {
    return REPLAY_ABI;
}

/* Runs steps of one region. Returns the number of correct steps; where it is below the number of
 * steps, the next step is wrong. */
int64_t replay_run(const struct replay_model *model, const struct replay_step *steps, int64_t count,
                   int32_t is_streamed) {
    for (int64_t i = 0; i < count; i++) {
        if (!run_step(model, &steps[i], is_streamed)) {
            return i;
        }
    }
    return count;
}

/* Fills bytes inside the arena with one tag. */
void replay_fill(const struct replay_model *model, int64_t address, int64_t size, int64_t tag) {
    set_tags(model, address, size, tag, 0);
}

void replay_copy(const struct replay_model *model, int64_t from, int64_t to, int64_t size) {
    copy_tags(model, from, to, size);
}

/* Writes a whole tensor, or returns whether all of it is in memory. */
int32_t replay_write(const struct replay_model *model, int64_t tensor) {
    return write_window(model, tensor, whole(&model->tensors[tensor]));
}

int32_t replay_holds(const struct replay_model *model, int64_t tensor) {
    return holds_window(model, tensor, whole(&model->tensors[tensor]));
}
