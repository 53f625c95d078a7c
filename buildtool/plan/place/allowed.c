/*
 * The possible offsets of items, from the items that have to fit beside them: see search.py.
 *
 * A set of offsets is a row of 64-bit words, bit k for the offset of k units. Bits above the
 * capacity have no meaning and are never set in `found`. No global state, no allocation: the
 * caller provides all memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ABI = 1, BITS = 64, SETS = 5 };

typedef struct {
    int32_t items, sections, shares, capacity;
    const int32_t *first, *last, *size, *alignment, *pinned;
    const int32_t *share_output, *share_input, *share_first, *share_last, *share_units,
        *share_distance;
    int64_t *slack;  /* scratch, by section: free units; -1: the section is not used */
    int32_t *paired; /* scratch, by item: its number of permissions in the section */
    uint64_t *sets;  /* scratch: SETS sets */
    uint64_t *found; /* a set for each item */
} allowed_problem;

/* An output and an input that may overlap, both live in a section, in units. `together`: the
 * smallest size of both; `separate`: whether they may lie side by side there; `farthest`: if they
 * overlap, the most units from the output's offset to the input's. */
typedef struct {
    int32_t output, input;
    int64_t distance, size_output, size_input, together, farthest;
    bool separate;
} pair;

static size_t words(const allowed_problem *p) {
    return (size_t)(p->capacity / BITS) + 1;
}

static uint64_t *set_of(const allowed_problem *p, int32_t which) {
    return p->sets + (size_t)which * words(p);
}

static uint64_t *found_of(const allowed_problem *p, int32_t item) {
    return p->found + (size_t)item * words(p);
}

/* to |= from << by; they are different sets. */
static void or_up(uint64_t *restrict to, const uint64_t *restrict from, int64_t by, size_t count) {
    if (by >= (int64_t)count * BITS)
        return;
    const size_t whole = (size_t)(by / BITS);
    const unsigned rest = (unsigned)(by % BITS);
    to += whole;
    count -= whole;
    for (size_t k = 0; k < count; ++k)
        to[k] |= from[k] << rest;
    for (size_t k = 1; k < count && rest; ++k)
        to[k] |= from[k - 1] >> (BITS - rest);
}

/* to |= from >> by; they are different sets. */
static void or_down(uint64_t *restrict to, const uint64_t *restrict from, int64_t by,
                    size_t count) {
    if (by >= (int64_t)count * BITS)
        return;
    const size_t whole = (size_t)(by / BITS);
    const unsigned rest = (unsigned)(by % BITS);
    from += whole;
    count -= whole;
    for (size_t k = 0; k < count; ++k)
        to[k] |= from[k] >> rest;
    for (size_t k = 1; k < count && rest; ++k)
        to[k - 1] |= from[k] << (BITS - rest);
}

typedef void moved(uint64_t *restrict, const uint64_t *restrict, int64_t, size_t);

/* Adds all offsets up to `most` above (or_up) or below those of a set; `before` is scratch. */
static void spread(uint64_t *set, moved *by, int64_t most, size_t count, uint64_t *before) {
    for (int64_t done = 0; done < most;) {
        const int64_t more = done + 1 < most - done ? done + 1 : most - done;
        memcpy(before, set, count * sizeof *set);
        by(set, before, more, count);
        done += more;
    }
}

/* Intersects `set` with `other`; returns whether the result has any offset. */
static bool keep(uint64_t *set, const uint64_t *other, size_t count) {
    uint64_t any = 0;
    for (size_t k = 0; k < count; ++k) {
        set[k] &= other[k];
        any |= set[k];
    }
    return any != 0;
}

static void clear(uint64_t *set, size_t count) {
    memset(set, 0, count * sizeof *set);
}

static void copy(uint64_t *to, const uint64_t *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
}

/* All offsets of an item within the capacity, with its alignment and its fixed offset. */
static void begin(const allowed_problem *p, int32_t item) {
    uint64_t *set = found_of(p, item);
    clear(set, words(p));
    const int32_t most = p->capacity - p->size[item], pin = p->pinned[item];
    for (int32_t at = pin >= 0 ? pin : 0; at <= most; at += p->alignment[item]) {
        if (at % p->alignment[item] == 0)
            set[at / BITS] |= (uint64_t)1 << (at % BITS);
        if (pin >= 0)
            break;
    }
}

static bool in_section(const allowed_problem *p, int32_t item, int32_t section) {
    return p->first[item] <= section && section < p->last[item];
}

static bool shared_in(const allowed_problem *p, int32_t share, int32_t section) {
    return p->share_first[share] <= section && section < p->share_last[share];
}

static pair pair_of(const allowed_problem *p, int32_t share, int64_t slack) {
    pair found = {
        p->share_output[share], p->share_input[share], p->share_distance[share], 0, 0, 0, 0, false};
    found.size_output = p->size[found.output];
    found.size_input = p->size[found.input];
    const int64_t end = found.distance + found.size_input;
    found.together = end > found.size_output ? end : found.size_output;
    found.separate = found.size_output + found.size_input - found.together <= slack;
    found.farthest = found.together + slack - found.size_input;
    return found;
}

/* Counts the permissions of a section's items; false if an item has two. */
static bool find_paired(const allowed_problem *p, int32_t section) {
    bool once = true;
    memset(p->paired, 0, (size_t)p->items * sizeof *p->paired);
    for (int32_t s = 0; s < p->shares; ++s)
        if (shared_in(p, s, section)) {
            once = once && !p->paired[p->share_output[s]]++;
            once = once && !p->paired[p->share_input[s]]++;
        }
    return once;
}

static void find_slack(const allowed_problem *p) {
    for (int32_t x = 0; x < p->sections; ++x)
        p->slack[x] = p->capacity;
    for (int32_t i = 0; i < p->items; ++i)
        for (int32_t x = p->first[i]; x < p->last[i]; ++x)
            p->slack[x] -= p->size[i];
    for (int32_t s = 0; s < p->shares; ++s)
        for (int32_t x = p->share_first[s]; x < p->share_last[s]; ++x)
            p->slack[x] += p->share_units[s];
}

/* The sums of the sizes live in a section, without one item or pair: what can lie below it. */
static void sums(const allowed_problem *p, int32_t section, int32_t without, int32_t beside,
                 uint64_t *set) {
    const size_t count = words(p);
    uint64_t *before = set_of(p, SETS - 1);
    clear(set, count);
    set[0] = 1;
    for (int32_t i = 0; i < p->items; ++i)
        if (i != without && !p->paired[i] && in_section(p, i, section)) {
            copy(before, set, count);
            or_up(set, before, p->size[i], count);
        }
    for (int32_t s = 0; s < p->shares; ++s) {
        if (s == beside || !shared_in(p, s, section))
            continue;
        const pair it = pair_of(p, s, p->slack[section]);
        copy(before, set, count);
        or_up(set, before, it.together, count);
        if (it.separate) {
            or_up(set, before, it.size_output, count);
            or_up(set, before, it.size_input, count);
        }
    }
    const unsigned used = (unsigned)(p->capacity % BITS) + 1;
    if (used < BITS)
        set[count - 1] &= ((uint64_t)1 << used) - 1;
}

/* Whether an item without permission also lives in other sections; only then it restricts them. */
static bool crosses(const allowed_problem *p, int32_t item, int32_t section) {
    return in_section(p, item, section) && !p->paired[item] && p->last[item] - p->first[item] > 1;
}

static bool fill_singles(const allowed_problem *p, int32_t section) {
    const size_t count = words(p);
    uint64_t *set = set_of(p, 0);
    for (int32_t i = 0; i < p->items; ++i) {
        bool known = !crosses(p, i, section);
        for (int32_t j = 0; j < i && !known; ++j)
            known = p->size[j] == p->size[i] && crosses(p, j, section);
        if (known)
            continue;
        sums(p, section, i, -1, set);
        spread(set, or_up, p->slack[section], count, set_of(p, SETS - 1));
        for (int32_t j = i; j < p->items; ++j)
            if (p->size[j] == p->size[i] && crosses(p, j, section) &&
                !keep(found_of(p, j), set, count))
                return false;
    }
    return true;
}

static bool fill_pair(const allowed_problem *p, int32_t section, int32_t share) {
    const size_t count = words(p);
    const pair it = pair_of(p, share, p->slack[section]);
    uint64_t *output = set_of(p, 0), *source = set_of(p, 1), *before = set_of(p, 2);
    sums(p, section, -1, share, output);
    spread(output, or_up, p->slack[section], count, set_of(p, SETS - 1));
    clear(source, count);
    or_up(source, output, it.distance, count);
    spread(source, or_up, it.farthest - it.distance, count, set_of(p, SETS - 1));
    if (it.separate) {
        copy(before, output, count);
        or_up(source, before, 0, count);
        or_up(source, before, it.size_output, count);
        or_up(output, before, it.size_input, count);
    }
    return keep(found_of(p, it.output), output, count) &&
           keep(found_of(p, it.input), source, count);
}

/* Restricts a section's items to the offsets that its subset sums allow; false if none remain. */
static bool fill(const allowed_problem *p, int32_t section) {
    if (p->slack[section] < 0)
        return false;
    if (!fill_singles(p, section))
        return false;
    for (int32_t s = 0; s < p->shares; ++s)
        if (shared_in(p, s, section) && !fill_pair(p, section, s))
            return false;
    return true;
}

/* Restricts a pair that has to overlap by each other; -1: none remains, 1: some removed. */
static int carry(const allowed_problem *p, const pair *it) {
    const size_t count = words(p);
    uint64_t *source = set_of(p, 0), *output = set_of(p, 1);
    clear(source, count);
    or_up(source, found_of(p, it->output), it->distance, count);
    spread(source, or_up, it->farthest - it->distance, count, set_of(p, SETS - 1));
    const bool some = keep(source, found_of(p, it->input), count);
    clear(output, count);
    or_down(output, source, it->distance, count);
    spread(output, or_down, it->farthest - it->distance, count, set_of(p, SETS - 1));
    if (!keep(output, found_of(p, it->output), count) || !some)
        return -1;
    const size_t bytes = count * sizeof *source;
    const bool same = memcmp(source, found_of(p, it->input), bytes) == 0 &&
                      memcmp(output, found_of(p, it->output), bytes) == 0;
    copy(found_of(p, it->input), source, count);
    copy(found_of(p, it->output), output, count);
    return same ? 0 : 1;
}

/* Restricts pairs that have to overlap until nothing changes; false: no offset remains. */
static bool agree(const allowed_problem *p) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t x = 0; x < p->sections; ++x)
            for (int32_t s = 0; s < p->shares && p->slack[x] >= 0; ++s) {
                if (!shared_in(p, s, x))
                    continue;
                const pair it = pair_of(p, s, p->slack[x]);
                const int fell = it.separate ? 0 : carry(p, &it);
                if (fell < 0)
                    return false;
                changed = changed || fell;
            }
    }
    return true;
}

int32_t allowed_abi(void) {
    return ABI;
}

/* 8-byte words of scratch for `sets`. */
size_t allowed_scratch(const allowed_problem *p) {
    return SETS * words(p);
}

/* Fills `found` and returns 1; returns 0 where nothing fits, and `found` is then invalid. */
int32_t allowed_find(const allowed_problem *p) {
    bool some = true;
    for (int32_t i = 0; i < p->items; ++i)
        begin(p, i);
    find_slack(p);
    for (int32_t x = 0; x < p->sections && some; ++x) {
        if (2 * p->slack[x] > p->capacity || !find_paired(p, x))
            p->slack[x] =
                -1; /* nearly every offset would be left, or more than two items overlap */
        else
            some = fill(p, x);
    }
    some = some && agree(p);
    for (int32_t i = 0; i < p->items && some; ++i)
        some = keep(found_of(p, i), found_of(p, i), words(p));
    return some;
}
