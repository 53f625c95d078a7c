/*
 * Arena problems in the form that the search needs, and the first of the orders of solver.py.
 *
 * No global state, no allocation: the caller provides all memory, which is divided as `arrays`
 * says.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ABI = 2, LOWER = 0, UPPER, SIZE, ALIGNMENT, OFFSET, FIELDS };
enum { UNIT = 0, LIVE, SECTIONS, LINKS, SHARES, CAPPED, FACTS };

static const int64_t MOST = (int64_t)1 << 29;    /* as MOST_UNITS */
static const int64_t LARGEST = (int64_t)1 << 51; /* bytes, and times: their sums stay in 64 bits */
static const int64_t LONGEST = (int64_t)1 << 33; /* longest life whose area fits into 64 bits */

typedef struct {
    int32_t *items, *first, *last, *size, *alignment, *pinned, *floor, *low, *loose, *twin, *order;
    int32_t *start, *share[6], *neighbour, *above, *below;
} arrays;

typedef struct {
    int32_t count, permissions;
    const int64_t *item, *permission; /* rows of FIELDS; rows of output, input, distance */
    int32_t live, sections, links, shares;
    int64_t unit;
    bool coarse;
    arrays to;
    int64_t *distance; /* scratch: of the shares, in bytes */
    int64_t *keys;     /* scratch: 4 * count */
} problem;

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t field(const problem *p, int32_t live, int32_t which) {
    return p->item[(size_t)p->to.items[live] * FIELDS + (size_t)which];
}

/* The position of an item among the live ones, or -1. */
static int32_t position(const problem *p, int64_t item) {
    int32_t low = 0, high = p->live;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->to.items[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->live && p->to.items[low] == item ? low : -1;
}

static void find_live(problem *p) {
    for (int32_t i = 0; i < p->count; ++i) {
        const int64_t *item = p->item + (size_t)i * FIELDS;
        if (item[LOWER] < item[UPPER] && item[SIZE] > 0)
            p->to.items[p->live++] = i;
    }
}

/* Permissions of items that are live together; distances in bytes, multiples of the granule. */
static bool find_shares(problem *p, int64_t granule, bool *negative) {
    for (int32_t k = 0; k < p->permissions; ++k) {
        const int64_t *row = p->permission + 3 * (size_t)k;
        const int32_t output = position(p, row[0]), input = position(p, row[1]);
        if (output < 0 || input < 0 || output == input)
            continue;
        if (row[2] > LARGEST)
            return false;
        *negative = *negative || row[2] < 0;
        if (field(p, output, LOWER) >= field(p, input, UPPER) ||
            field(p, input, LOWER) >= field(p, output, UPPER))
            continue;
        int32_t known = 0;
        while (known < p->shares &&
               (p->to.share[0][known] != output || p->to.share[1][known] != input))
            ++known;
        p->to.share[0][known] = output;
        p->to.share[1][known] = input;
        p->distance[known] = row[2] > 0 ? (row[2] + granule - 1) / granule * granule : 0;
        p->shares += known == p->shares;
    }
    return true;
}

/* Whether items that may lie at one offset form a cycle, each the output of the next one. */
static bool is_circular(const problem *p) {
    int32_t *waits = p->to.order, left = 0; /* on this many outputs; `order` is free here */
    bool changed = true;
    for (int32_t i = 0; i < p->live; ++i)
        waits[i] = 0;
    for (int32_t k = 0; k < p->shares; ++k) {
        p->to.share[2][k] = p->distance[k] == 0; /* whether it is still to be looked at */
        left += p->to.share[2][k];
        waits[p->to.share[1][k]] += p->to.share[2][k];
    }
    while (left > 0 && changed) {
        changed = false;
        for (int32_t k = 0; k < p->shares; ++k)
            if (p->to.share[2][k] && waits[p->to.share[0][k]] == 0) {
                p->to.share[2][k] = 0;
                --waits[p->to.share[1][k]];
                --left;
                changed = true;
            }
    }
    return left > 0;
}

static bool find_unit(problem *p) {
    int64_t unit = 0, ends = 0, most = 0;
    for (int32_t i = 0; i < p->live; ++i) {
        const int64_t offset = field(p, i, OFFSET) < 0 ? 0 : field(p, i, OFFSET);
        if (field(p, i, ALIGNMENT) < 1 || field(p, i, SIZE) > LARGEST ||
            field(p, i, ALIGNMENT) > LARGEST || offset > LARGEST || field(p, i, LOWER) < -LARGEST ||
            field(p, i, UPPER) > LARGEST)
            return false;
        unit = gcd(gcd(unit, field(p, i, SIZE)), offset);
        most = offset > most ? offset : most;
    }
    for (int32_t k = 0; k < p->shares; ++k)
        unit = gcd(unit, p->distance[k]);
    p->coarse = true;
    for (int32_t i = 0; i < p->live; ++i)
        p->coarse = p->coarse && unit % field(p, i, ALIGNMENT) == 0;
    for (int32_t i = 0; i < p->live && !p->coarse; ++i)
        unit = gcd(unit, field(p, i, ALIGNMENT));
    p->unit = unit ? unit : 1;
    for (int32_t i = 0; i < p->live; ++i)
        ends += field(p, i, SIZE) / p->unit + (p->coarse ? 1 : field(p, i, ALIGNMENT) / p->unit);
    return ends + most / p->unit < MOST;
}

static void fill_items(problem *p) {
    for (int32_t i = 0; i < p->live; ++i) {
        const int64_t offset = field(p, i, OFFSET);
        p->to.size[i] = p->to.low[i] = (int32_t)(field(p, i, SIZE) / p->unit);
        p->to.alignment[i] = p->coarse ? 1 : (int32_t)(field(p, i, ALIGNMENT) / p->unit);
        p->to.pinned[i] = offset < 0 ? -1 : (int32_t)(offset / p->unit);
        p->to.loose[i] = 0;
    }
}

/* Sorts ascending; returns the number of different values, which come first. */
static int32_t sort_unique(int64_t *values, int32_t count) {
    static const int32_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; ++g) {
        const int32_t gap = gaps[g];
        for (int32_t k = gap; k < count; ++k) {
            const int64_t value = values[k];
            int32_t j = k;
            for (; j >= gap && values[j - gap] > value; j -= gap)
                values[j] = values[j - gap];
            values[j] = value;
        }
    }
    int32_t kept = 0;
    for (int32_t k = 0; k < count; ++k)
        if (kept == 0 || values[k] != values[kept - 1])
            values[kept++] = values[k];
    return kept;
}

/*
 * Sections: from one time on if something is born then and dies at the next. As sorted keys times
 * are even where something dies, and odd where something is born: the two are neighbours.
 */
static void find_sections(problem *p) {
    int64_t *keys = p->keys, *counts = p->keys + 2 * p->count;
    for (int32_t i = 0; i < p->live; ++i) {
        keys[2 * i] = field(p, i, LOWER) * 2 + 1;
        keys[2 * i + 1] = field(p, i, UPPER) * 2;
    }
    const int32_t count = sort_unique(keys, 2 * p->live);
    p->sections = 0;
    for (int32_t k = 0; k < count; ++k) {
        counts[k] = p->sections; /* complete sections before this time */
        if (keys[k] % 2 != 0 && k + 1 < count && keys[k + 1] % 2 == 0)
            ++p->sections;
    }
    for (int32_t i = 0; i < p->live; ++i) {
        const int64_t wanted[2] = {field(p, i, LOWER) * 2 + 1, field(p, i, UPPER) * 2};
        int32_t *found[2] = {p->to.first + i, p->to.last + i};
        for (int32_t side = 0; side < 2; ++side) {
            int32_t low = 0, high = count - 1;
            while (low < high) {
                const int32_t middle = (low + high) / 2;
                if (keys[middle] < wanted[side])
                    low = middle + 1;
                else
                    high = middle;
            }
            *found[side] = (int32_t)counts[low];
        }
    }
}

static void find_links(problem *p) {
    p->links = 0;
    for (int32_t i = 0; i < p->live; ++i) {
        p->to.start[i] = p->links;
        for (int32_t j = 0; j < p->live; ++j)
            if (i != j && p->to.first[i] < p->to.last[j] && p->to.first[j] < p->to.last[i])
                p->to.neighbour[p->links++] = j;
    }
    p->to.start[p->live] = p->links;
    p->to.above = p->to.neighbour + p->links;
    p->to.below = p->to.above + p->links;
    for (int32_t i = 0; i < p->live; ++i)
        for (int32_t link = p->to.start[i]; link < p->to.start[i + 1]; ++link) {
            p->to.above[link] = p->to.size[i];
            p->to.below[link] = p->to.size[p->to.neighbour[link]];
        }
}

static int32_t link_of(const problem *p, int32_t item, int32_t other) {
    int32_t link = p->to.start[item];
    while (p->to.neighbour[link] != other)
        ++link;
    return link;
}

static int32_t least(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static void fill_shares(problem *p) {
    for (int32_t k = 0; k < p->shares; ++k) {
        const int32_t output = p->to.share[0][k], input = p->to.share[1][k];
        const int32_t size = p->to.size[output];
        const int64_t apart = p->distance[k] / p->unit;
        const int32_t away = apart < size ? (int32_t)apart : size;
        p->to.above[link_of(p, output, input)] = away;
        p->to.below[link_of(p, input, output)] = away;
        p->to.low[output] = least(p->to.low[output], away);
        p->to.loose[output] = p->to.loose[input] = 1;
        p->to.share[2][k] = larger(p->to.first[output], p->to.first[input]);
        p->to.share[3][k] = least(p->to.last[output], p->to.last[input]);
        p->to.share[4][k] = larger(0, least(p->to.size[input], size - away));
        p->to.share[5][k] = away;
    }
}

static void find_twins(problem *p) {
    for (int32_t i = 0; i < p->live; ++i) {
        int32_t j = p->to.pinned[i] >= 0 || p->to.loose[i] ? -1 : i - 1;
        while (j >= 0 &&
               (p->to.pinned[j] >= 0 || p->to.loose[j] || p->to.first[j] != p->to.first[i] ||
                p->to.last[j] != p->to.last[i] || p->to.size[j] != p->to.size[i] ||
                p->to.alignment[j] != p->to.alignment[i]))
            --j;
        p->to.twin[i] = j;
    }
}

/* The lowest offset of every item among the pinned ones alone; those by offset, then by distances.
 */
static void find_floors(problem *p) {
    int32_t *near = (int32_t *)p->keys; /* links to pinned neighbours */
    for (int32_t i = 0; i < p->live; ++i) {
        int32_t count = 0, floor = 0;
        for (int32_t link = p->to.start[i]; link < p->to.start[i + 1]; ++link) {
            const int32_t pin = p->to.pinned[p->to.neighbour[link]];
            if (pin < 0)
                continue;
            int32_t k = count++;
            for (; k > 0; --k) {
                const int32_t before = near[k - 1], at = p->to.pinned[p->to.neighbour[before]];
                if (at < pin || (at == pin && (p->to.above[before] < p->to.above[link] ||
                                               (p->to.above[before] == p->to.above[link] &&
                                                p->to.below[before] <= p->to.below[link]))))
                    break;
                near[k] = before;
            }
            near[k] = link;
        }
        for (int32_t k = 0; k < count; ++k) {
            const int32_t pin = p->to.pinned[p->to.neighbour[near[k]]];
            const int32_t alignment = p->to.alignment[i], end = pin + p->to.below[near[k]];
            if (floor + p->to.above[near[k]] > pin)
                floor = larger(floor, (end + alignment - 1) / alignment * alignment);
        }
        p->to.floor[i] = p->to.pinned[i] >= 0 ? p->to.pinned[i] : floor;
    }
}

/* Whether item `a` comes before `b`: by area, by what is live with it, by length, by position. */
static bool is_before(const problem *p, const int64_t *crowd, int32_t a, int32_t b) {
    const int64_t length_a = field(p, a, UPPER) - field(p, a, LOWER);
    const int64_t length_b = field(p, b, UPPER) - field(p, b, LOWER);
    const int64_t area_a = length_a * p->to.size[a], area_b = length_b * p->to.size[b];
    if (area_a != area_b)
        return area_a > area_b;
    if (crowd[a] != crowd[b])
        return crowd[a] > crowd[b];
    return length_a != length_b ? length_a > length_b : a < b;
}

/*
 * The items in that order, but twins among each other by position. Its first is -1 where a life is
 * too long to compare areas.
 */
static void find_order(problem *p) {
    for (int32_t i = 0; i < p->live; ++i)
        if (field(p, i, UPPER) - field(p, i, LOWER) > LONGEST) {
            p->to.order[0] = -1;
            return;
        }
    int64_t *live = p->keys, *crowd = p->keys + p->count;
    int32_t *head = (int32_t *)(p->keys + 2 * p->count), *next = head + p->count;
    for (int32_t x = 0; x < p->sections; ++x)
        live[x] = 0;
    for (int32_t i = 0; i < p->live; ++i)
        for (int32_t x = p->to.first[i]; x < p->to.last[i]; ++x)
            live[x] += p->to.size[i];
    for (int32_t i = 0; i < p->live; ++i) {
        crowd[i] = 0;
        for (int32_t x = p->to.first[i]; x < p->to.last[i]; ++x)
            crowd[i] = live[x] > crowd[i] ? live[x] : crowd[i];
        int32_t k = i;
        for (; k > 0 && is_before(p, crowd, i, p->to.order[k - 1]); --k)
            p->to.order[k] = p->to.order[k - 1];
        p->to.order[k] = i;
    }
    int32_t *waiting = next + p->count; /* by first of its twins: the one that comes next */
    for (int32_t i = 0; i < p->live; ++i) {
        const int32_t twin = p->to.twin[i];
        head[i] = twin < 0 ? i : head[twin];
        waiting[i] = i;
        next[i] = -1;
        if (twin >= 0)
            next[twin] = i;
    }
    for (int32_t k = 0; k < p->live; ++k) {
        const int32_t family = head[p->to.order[k]];
        p->to.order[k] = waiting[family];
        waiting[family] = next[waiting[family]];
    }
}

int32_t instance_abi(void);
int32_t instance_compile(int32_t count, int32_t permissions, const int64_t *item,
                         const int64_t *permission, int64_t granule, int64_t *facts,
                         int64_t *scratch, int32_t *memory);

int32_t instance_abi(void) {
    return ABI;
}

/*
 * Returns 1, with `facts` and the arrays in `memory`: eleven of length `count`, one of count + 1,
 * six of length `permissions`, three of the number of links. Returns 0 where a number is too
 * large, with the unit in `facts`. `scratch`: 4 * count + permissions words;
 * `memory`: room for 12 * count + 1 + 6 * permissions + 3 * count * (count - 1) words.
 */
int32_t instance_compile(int32_t count, int32_t permissions, const int64_t *item,
                         const int64_t *permission, int64_t granule, int64_t *facts,
                         int64_t *scratch, int32_t *memory) {
    problem p = {.count = count,
                 .permissions = permissions,
                 .item = item,
                 .permission = permission,
                 .unit = granule,
                 .keys = scratch,
                 .distance = scratch + 4 * (size_t)count};
    int32_t **const parts[] = {&p.to.items,     &p.to.first,  &p.to.last,  &p.to.size,
                               &p.to.alignment, &p.to.pinned, &p.to.floor, &p.to.low,
                               &p.to.loose,     &p.to.twin,   &p.to.order};
    bool negative = false;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; ++k, memory += count)
        *parts[k] = memory;
    p.to.start = memory;
    memory += count + 1;
    for (int32_t k = 0; k < 6; ++k, memory += permissions)
        p.to.share[k] = memory;
    p.to.neighbour = memory;
    find_live(&p);
    const bool fits = find_shares(&p, granule, &negative) && find_unit(&p);
    facts[UNIT] = p.unit;
    if (!fits)
        return 0;
    facts[CAPPED] = negative || is_circular(&p);
    fill_items(&p);
    find_sections(&p);
    find_links(&p);
    fill_shares(&p);
    find_twins(&p);
    find_floors(&p);
    find_order(&p);
    facts[LIVE] = p.live;
    facts[SECTIONS] = p.sections;
    facts[LINKS] = p.links;
    facts[SHARES] = p.shares;
    return 1;
}
