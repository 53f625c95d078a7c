/*
 * Exact search for arena offsets.
 *
 * Items are placed from the bottom up, each as low as the items placed before allow. Offsets never
 * fall along a branch, so an item that has been passed over can no longer use its old place: it has
 * to wait until another item lies below it. The search cuts branches by this rule; search.py
 * explains it.
 *
 * No global state, no allocation: the caller provides all memory. Callers keep to these limits:
 * sizes add up to less than 2^29 units, and capacity, alignments and pins are less than 2^29.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ABI = 3, FOUND = 1, IMPOSSIBLE = 2, LIMIT = 3 };
enum { PASSED = 1, LATE = 2, ROUNDS = 4 };

static const int32_t NONE = (int32_t)1 << 30;

/* Arrays as in instance.py; all offsets, sizes and distances in units. */
typedef struct {
    int32_t items, sections, links, shares, capacity, table_bits;
    const int32_t *first, *last, *size, *alignment, *pinned, *floor, *low, *loose, *twin;
    const int32_t *start, *neighbour, *above, *below;
    const int32_t *share_output, *share_input, *share_first, *share_last, *share_units;
    uint64_t *table; /* two words a slot, 2^table_bits slots: states known to be impossible */
    const uint64_t *allowed; /* by item, `words` words: bit k for an offset of k units */
    int32_t words;           /* 0: every offset is allowed */
} search_problem;

typedef struct {
    uint64_t a, b;
} signature;

/* Items that share no time with the other items still to be placed. */
typedef struct {
    int32_t list, count; /* in the pool, in their order */
    int32_t offset;      /* of the last item placed */
    int32_t before;      /* the number of items before that one in the order */
    int32_t parent;      /* the node whose choice split it off, or -1 */
} part;

typedef struct {
    part of;
    signature key;
    int32_t choices, choice_count, next; /* in the pool; what to try next */
    int32_t placed;                      /* the item that is being tried, or -1 */
    int32_t trail, agenda, pool;         /* their lengths when the node began to try */
} node;

typedef struct {
    const search_problem *p;
    const int32_t *order; /* items by rank */
    bool crowded;         /* parts are ordered again, by the most units waiting with an item */
    node *nodes;
    part *agenda;
    int32_t *rank, *level, *offset; /* level: the lowest offset that the placed items allow */
    int32_t *waiting;               /* 1: not yet placed */
    int32_t *bound, *state; /* a node's own: the lowest offset that makes sense; PASSED, LATE */
    int64_t *keys;
    int32_t *index;
    int32_t *rest, *top; /* by section: units to be placed; scratch */
    int32_t *cut; /* by section: items yet to be placed that are live in it and in the next */
    int32_t *share_from, *share_of; /* item i's shares: share_of from share_from[i] to [i + 1] */
    int32_t *trail, *pool;
    int32_t node_count, agenda_count, trail_count, pool_count;
    int64_t visited;
} search;

static int32_t at_least(int32_t value, int32_t alignment) {
    return alignment == 1 ? value : (value + alignment - 1) / alignment * alignment;
}

/* The lowest allowed offset of an item from `value` on; above the capacity if there is none. */
static int32_t lowest(const search_problem *p, int32_t item, int32_t value) {
    const int32_t from = at_least(value, p->alignment[item]);
    if (p->words == 0)
        return from;
    const uint64_t *allowed = p->allowed + (size_t)item * (size_t)p->words;
    uint64_t mask = UINT64_MAX << (from & 63);
    for (int32_t word = from >> 6; word < p->words; ++word, mask = UINT64_MAX) {
        uint64_t left = allowed[word] & mask;
        if (left == 0)
            continue;
        int32_t bit = 0;
        for (; (left & 255) == 0; left >>= 8)
            bit += 8;
        for (; (left & 1) == 0; left >>= 1)
            ++bit;
        return (word << 6) + bit;
    }
    return p->capacity + 1;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ---- conclusions from a state ------------------------------------------------------------------
 */

/* Raises an item's bound; false if it cannot lie that high. */
static bool raise_to(search *s, int32_t item, int32_t value) {
    if (value <= s->bound[item])
        return true;
    s->bound[item] = lowest(s->p, item, value);
    return s->p->pinned[item] < 0 && s->bound[item] + s->p->size[item] <= s->p->capacity;
}

/*
 * Finds the items that have been passed over, the state's signature, and `limit`: no item may be
 * placed next at this offset or above, because a smaller one would fit below it.
 */
static bool inspect(search *s, const part *of, signature *key, int32_t *limit) {
    const search_problem *p = s->p;
    const int32_t *list = s->pool + of->list;
    int32_t lowest = NONE;
    key->a = key->b = 0;
    *limit = NONE;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = list[k], level = s->level[i];
        const bool passed =
            level < of->offset || (level == of->offset && k < of->before && !p->loose[i]);
        if (level + p->size[i] > p->capacity)
            return false;
        if (p->pinned[i] >= 0 && (passed || level != p->pinned[i]))
            return false;
        if (!passed && level < lowest)
            lowest = level;
        if (p->pinned[i] < 0 && level + p->size[i] < *limit)
            *limit = level + p->size[i];
        s->bound[i] = level;
        s->state[i] = passed ? PASSED : 0;
        const uint64_t fact =
            ((uint64_t)(uint32_t)i << 32) | ((uint64_t)(uint32_t)level << 1) | passed;
        const uint64_t word = mix(fact * UINT64_C(0x9e3779b97f4a7c15) + 1);
        key->a += word;
        key->b += (word ^ (word >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    }
    return lowest < *limit;
}

/*
 * An item that has been passed over will lie on a neighbour that is not placed yet; and a neighbour
 * will use the place where the item could lie now, or else the item would lie there.
 */
static bool lift_passed(search *s, const part *of) {
    const search_problem *p = s->p;
    const int32_t *list = s->pool + of->list;
    int32_t support = NONE;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = list[k];
        if (!s->state[i] && s->bound[i] + p->low[i] < support)
            support = s->bound[i] + p->low[i];
    }
    for (int32_t k = 0; k < of->count; ++k)
        if (s->state[list[k]] && !raise_to(s, list[k], support))
            return false;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = list[k];
        if (!s->state[i])
            continue;
        bool blocked = false;
        support = NONE;
        for (int32_t link = p->start[i]; link < p->start[i + 1]; ++link) {
            const int32_t other = p->neighbour[link];
            if (!s->waiting[other])
                continue;
            const int32_t begin = s->bound[other];
            blocked = blocked || begin < s->level[i] + p->above[link];
            if (begin + p->below[link] < support)
                support = begin + p->below[link];
        }
        if (!blocked || !raise_to(s, i, support))
            return false;
    }
    return true;
}

/*
 * Stores in `top` the end of an item that can be a section's lowest; returns whether there is a
 * section whose lowest it cannot be. It has no branches, so that compilers can vectorise it.
 */
static bool lower_tops(const int32_t *restrict rest, int32_t *restrict top, int32_t count,
                       int32_t room, int32_t end) {
    int32_t late = 0;
    for (int32_t x = 0; x < count; ++x) {
        const int32_t is_late = rest[x] > room;
        late |= is_late;
        top[x] = !is_late & (end < top[x]) ? end : top[x];
    }
    return late;
}

/* The highest of the tops of sections whose lowest an item cannot be, or `need`. */
static int32_t highest_top(const int32_t *restrict rest, const int32_t *restrict top, int32_t count,
                           int32_t room, int32_t need) {
    for (int32_t x = 0; x < count; ++x)
        need = (rest[x] > room) & (top[x] > need) ? top[x] : need;
    return need;
}

/* An item too high to be a section's lowest will lie on one that can be. */
static bool lift_late(search *s, const part *of, int32_t from, int32_t to) {
    const search_problem *p = s->p;
    const int32_t *list = s->pool + of->list;
    bool changed = true;
    for (int32_t round = 0; changed && round < ROUNDS; ++round) {
        int32_t *late = s->index, count = 0; /* the items that are not the lowest everywhere */
        changed = false;
        for (int32_t x = from; x < to; ++x)
            s->top[x] = NONE;
        for (int32_t k = 0; k < of->count; ++k) {
            const int32_t i = list[k], first = p->first[i];
            if (lower_tops(s->rest + first, s->top + first, p->last[i] - first,
                           p->capacity - s->bound[i], s->bound[i] + p->low[i]))
                late[count++] = i;
        }
        for (int32_t k = 0; k < count; ++k) {
            const int32_t i = late[k], first = p->first[i];
            const int32_t need = highest_top(s->rest + first, s->top + first, p->last[i] - first,
                                             p->capacity - s->bound[i], s->bound[i]);
            if (need == s->bound[i])
                continue;
            if (!raise_to(s, i, need))
                return false;
            s->state[i] |= LATE;
            changed = true;
        }
    }
    return true;
}

/* Sorts descending. */
static void sort_down(int64_t *keys, int32_t count) {
    static const int32_t gaps[] = {301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; ++g) {
        const int32_t gap = gaps[g];
        for (int32_t k = gap; k < count; ++k) {
            const int64_t key = keys[k];
            int32_t j = k;
            for (; j >= gap && keys[j - gap] < key; j -= gap)
                keys[j] = keys[j - gap];
            keys[j] = key;
        }
    }
}

/* Sorts the part's items by descending bound, then by rank, as the low words of `keys`. */
static void sort_by_bound(search *s, const part *of) {
    const int32_t *list = s->pool + of->list;
    for (int32_t k = 0; k < of->count; ++k)
        s->keys[k] = ((int64_t)s->bound[list[k]] << 32) + (of->count - k);
    sort_down(s->keys, of->count);
}

/* Subtracts the units that items already counted share with `item`; state's sign marks them. */
static void share(search *s, int32_t item) {
    const search_problem *p = s->p;
    for (int32_t n = s->share_from[item]; n < s->share_from[item + 1]; ++n) {
        const int32_t k = s->share_of[n], output = p->share_output[k];
        const int32_t other = output == item ? p->share_input[k] : output;
        if (!s->waiting[other] || s->state[other] >= 0)
            continue;
        for (int32_t x = p->share_first[k]; x < p->share_last[k]; ++x)
            s->top[x] -= p->share_units[k];
    }
}

/* Whether in some section the items at or above some offset do not fit. */
static bool overfull(search *s, const part *of, int32_t from, int32_t to) {
    const search_problem *p = s->p;
    sort_by_bound(s, of);
    for (int32_t x = from; x < to; ++x)
        s->top[x] = 0;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = s->pool[of->list + of->count - (int32_t)(s->keys[k] & INT32_MAX)];
        const int32_t last = p->last[i], size = p->size[i];
        const int32_t room = p->capacity - s->bound[i];
        int32_t most = 0;
        share(s, i);
        for (int32_t x = p->first[i]; x < last; ++x) {
            s->top[x] += size;
            if (s->top[x] > most)
                most = s->top[x];
        }
        if (most > room)
            return true;
        s->state[i] = ~s->state[i];
    }
    return false;
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

static uint64_t *slot(const search *s, const signature *key) {
    return s->p->table + 2 * (key->a >> (64 - s->p->table_bits));
}

static void remember(const search *s, const signature *key) {
    uint64_t *entry = slot(s, key);
    entry[0] = key->a;
    entry[1] = key->b;
}

static bool is_known(const search *s, const signature *key) {
    const uint64_t *entry = slot(s, key);
    return entry[0] == key->a && entry[1] == key->b;
}

static bool is_consistent(search *s, const part *of) {
    int32_t from = s->p->sections, to = 0;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = s->pool[of->list + k];
        if (s->p->first[i] < from)
            from = s->p->first[i];
        if (s->p->last[i] > to)
            to = s->p->last[i];
    }
    return lift_passed(s, of) && lift_late(s, of, from, to) && !overfull(s, of, from, to);
}

/* Puts the possible next items on the pool, by offset, then by rank; returns their number. */
static int32_t choose(search *s, const part *of, int32_t limit) {
    const search_problem *p = s->p;
    int32_t *chosen = s->pool + s->pool_count, count = 0;
    for (int32_t k = 0; k < of->count; ++k) {
        const int32_t i = s->pool[of->list + k], level = s->level[i];
        /* The state's bits are inverted since `overfull`. */
        if (s->state[i] != ~0 || level >= limit)
            continue;
        if (p->twin[i] >= 0 && s->waiting[p->twin[i]])
            continue;
        int32_t j = count++;
        for (; j > 0 && s->level[chosen[j - 1]] > level; --j)
            chosen[j] = chosen[j - 1];
        chosen[j] = i;
    }
    return count;
}

/* Adds a node for a part unless there is no way to place it. */
static bool open_node(search *s, const part *of) {
    node *n = s->nodes + s->node_count;
    int32_t limit;
    ++s->visited;
    if (!inspect(s, of, &n->key, &limit) || is_known(s, &n->key))
        return false;
    const int32_t count = is_consistent(s, of) ? choose(s, of, limit) : 0;
    if (count == 0) {
        remember(s, &n->key);
        return false;
    }
    n->of = *of;
    n->choices = s->pool_count;
    n->choice_count = count;
    n->next = 0;
    n->placed = -1;
    s->pool_count += count;
    n->trail = s->trail_count;
    n->agenda = s->agenda_count;
    n->pool = s->pool_count;
    ++s->node_count;
    return true;
}

/* Changes the units to be placed by an item's size, without what it shares with waiting items. */
static void count_rest(search *s, int32_t item, int32_t sign) {
    const search_problem *p = s->p;
    for (int32_t x = p->first[item]; x < p->last[item]; ++x)
        s->rest[x] += sign * p->size[item];
    for (int32_t x = p->first[item]; x < p->last[item] - 1; ++x)
        s->cut[x] += sign;
    for (int32_t n = s->share_from[item]; n < s->share_from[item + 1]; ++n) {
        const int32_t k = s->share_of[n], output = p->share_output[k];
        const int32_t other = output == item ? p->share_input[k] : output;
        if (!s->waiting[other])
            continue;
        for (int32_t x = p->share_first[k]; x < p->share_last[k]; ++x)
            s->rest[x] -= sign * p->share_units[k];
    }
}

/* Places an item at its level; false if a neighbour can then no longer be placed. */
static bool place(search *s, int32_t item) {
    const search_problem *p = s->p;
    const int32_t offset = s->level[item];
    bool fits = true;
    s->offset[item] = offset;
    count_rest(s, item, -1);
    s->waiting[item] = 0;
    for (int32_t link = p->start[item]; link < p->start[item + 1]; ++link) {
        const int32_t other = p->neighbour[link];
        const int32_t above = at_least(offset + p->above[link], p->alignment[other]);
        if (!s->waiting[other] || s->level[other] >= above)
            continue;
        const int32_t level = lowest(p, other, above);
        s->trail[s->trail_count++] = other;
        s->trail[s->trail_count++] = s->level[other];
        s->level[other] = level;
        fits = fits && level + p->size[other] <= p->capacity;
    }
    return fits;
}

/* Takes back all placements from node `index` on and drops the nodes after it. */
static void take_back(search *s, int32_t index) {
    const node *n = s->nodes + index;
    while (s->trail_count > n->trail) {
        s->trail_count -= 2;
        s->level[s->trail[s->trail_count]] = s->trail[s->trail_count + 1];
    }
    for (int32_t k = s->node_count - 1; k >= index; --k) {
        node *later = s->nodes + k;
        if (later->placed < 0)
            continue;
        s->waiting[later->placed] = 1;
        count_rest(s, later->placed, 1);
        later->placed = -1;
    }
    s->node_count = index + 1;
    s->agenda_count = n->agenda;
    s->pool_count = n->pool;
}

/* Whether a part of a single free item can lie at its level; if so it is placed there. */
static bool settle(search *s, const part *of) {
    const search_problem *p = s->p;
    const int32_t item = s->pool[of->list], level = s->level[item];
    const bool passed =
        level < of->offset || (level == of->offset && of->before > 0 && !p->loose[item]);
    s->offset[item] = level;
    return !passed && level + p->size[item] <= p->capacity &&
           (p->pinned[item] < 0 || p->pinned[item] == level);
}

/* Numbers the parts without common time, in `top` by section; returns the number of parts. */
static int32_t number_parts(search *s, const int32_t *list, int32_t count) {
    const search_problem *p = s->p;
    int32_t parts = 0, open = 0;
    for (int32_t x = 0; x < p->sections; ++x)
        s->top[x] = 0;
    for (int32_t k = 0; k < count; ++k) {
        if (!s->waiting[list[k]])
            continue;
        ++s->top[p->first[list[k]]];
        --s->top[p->last[list[k]] - 1];
    }
    for (int32_t x = 0; x < p->sections; ++x) {
        open += s->top[x];
        s->top[x] = parts;
        if (open == 0)
            ++parts;
    }
    return parts;
}

/* Whether the waiting items of a part may separate into parts without the item just placed. */
static bool may_part(const search *s, int32_t item) {
    for (int32_t x = s->p->first[item]; x < s->p->last[item] - 1; ++x)
        if (s->cut[x] == 0)
            return true;
    return false;
}

/* Puts the waiting items on the agenda as one part; `placed`: the item that was just placed. */
static bool keep(search *s, const int32_t *list, int32_t count, int32_t placed, part made) {
    int32_t *kept = s->pool + s->pool_count;
    for (int32_t k = 0; k < count; ++k) {
        if (s->waiting[list[k]])
            kept[made.count++] = list[k];
        else if (list[k] == placed)
            made.before = made.count;
    }
    made.list = s->pool_count;
    s->pool_count += made.count;
    if (made.count == 1)
        return settle(s, &made);
    if (made.count > 1)
        s->agenda[s->agenda_count++] = made;
    return true;
}

/* Orders a part's items by the most waiting units in one of their sections, then by rank. */
static void order_by_crowd(search *s, part *of) {
    const search_problem *p = s->p;
    int32_t *list = s->pool + of->list;
    for (int32_t k = 0; k < of->count; ++k) {
        int32_t most = 0;
        for (int32_t x = p->first[list[k]]; x < p->last[list[k]]; ++x)
            if (s->rest[x] > most)
                most = s->rest[x];
        s->keys[k] = ((int64_t)most << 32) + (p->items - s->rank[list[k]]);
    }
    sort_down(s->keys, of->count);
    for (int32_t k = 0; k < of->count; ++k)
        list[k] = s->order[p->items - (int32_t)(s->keys[k] & INT32_MAX)];
    of->before = 0;
}

/* Fills the parts on the agenda with the waiting items; `index`: number -> place on the agenda. */
static void fill_parts(search *s, const int32_t *list, int32_t count, int32_t placed,
                       int32_t begin) {
    for (int32_t k = 0; k < count; ++k) {
        if (s->waiting[list[k]]) {
            part *into = s->agenda + s->index[s->top[s->p->first[list[k]]]];
            s->pool[into->list + into->count++] = list[k];
        } else if (list[k] == placed) {
            for (int32_t n = begin; n < s->agenda_count; ++n)
                s->agenda[n].before = s->agenda[n].count;
        }
    }
    for (int32_t n = begin; s->crowded && n < s->agenda_count; ++n)
        order_by_crowd(s, s->agenda + n);
}

/* Splits the waiting items into parts without common time and puts them on the agenda. */
static bool split(search *s, const int32_t *list, int32_t count, int32_t placed, part made) {
    const int32_t parts = number_parts(s, list, count), begin = s->agenda_count;
    int32_t *index = s->index; /* by number: the count of items, then the place on the agenda */
    for (int32_t k = 0; k < parts; ++k)
        index[k] = 0;
    for (int32_t k = 0; k < count; ++k)
        if (s->waiting[list[k]])
            ++index[s->top[s->p->first[list[k]]]];
    for (int32_t k = 0; k < parts; ++k) {
        if (index[k] == 0)
            continue;
        made.list = s->pool_count;
        s->pool_count += index[k];
        index[k] = s->agenda_count;
        s->agenda[s->agenda_count++] = made;
    }
    fill_parts(s, list, count, placed, begin);
    int32_t kept = begin;
    for (int32_t k = begin; k < s->agenda_count; ++k) {
        if (s->agenda[k].count > 1)
            s->agenda[kept++] = s->agenda[k];
        else if (!settle(s, s->agenda + k))
            return false;
    }
    s->agenda_count = kept;
    return true;
}

/* Tries the node's next choice; false if it fails. */
static bool try_next(search *s, node *n, int32_t index) {
    const int32_t item = s->pool[n->choices + n->next++];
    n->placed = item;
    if (!place(s, item))
        return false;
    const part made = {0, 0, s->offset[item], 0, index};
    const int32_t *list = s->pool + n->of.list, count = n->of.count;
    return may_part(s, item) ? split(s, list, count, item, made) : keep(s, list, count, item, made);
}

/* Goes back from node `index` to one with a choice left and tries it; false without such a node. */
static bool go_on(search *s, int32_t index) {
    while (index >= 0) {
        node *n = s->nodes + index;
        take_back(s, index);
        if (n->next == n->choice_count) {
            remember(s, &n->key);
            index = n->of.parent;
        } else if (try_next(s, n, index)) {
            return true;
        }
    }
    return false;
}

/* ---- the interface -----------------------------------------------------------------------------
 */

/* The next piece of the memory; without memory only its length is counted. */
static void *take(unsigned char *memory, size_t *used, size_t bytes) {
    const size_t begin = *used;
    *used += (bytes + 7) / 8 * 8;
    return memory ? memory + begin : NULL;
}

static size_t carve(search *s, const search_problem *p, unsigned char *memory) {
    const size_t items = (size_t)p->items, sections = (size_t)p->sections, word = sizeof(int32_t);
    size_t used = 0;
    s->nodes = take(memory, &used, (items + 1) * sizeof(node));
    s->agenda = take(memory, &used, (items + 1) * sizeof(part));
    s->rank = take(memory, &used, items * word);
    s->level = take(memory, &used, items * word);
    s->offset = take(memory, &used, items * word);
    s->waiting = take(memory, &used, items * word);
    s->bound = take(memory, &used, items * word);
    s->state = take(memory, &used, items * word);
    s->keys = take(memory, &used, items * sizeof(int64_t));
    s->index = take(memory, &used, items * word);
    s->rest = take(memory, &used, sections * word);
    s->top = take(memory, &used, sections * word);
    s->cut = take(memory, &used, sections * word);
    s->share_from = take(memory, &used, (items + 1) * word);
    s->share_of = take(memory, &used, 2 * (size_t)p->shares * word);
    s->trail = take(memory, &used, 2 * (size_t)p->links * word);
    /* The list, the choices and the parts of every node: the k-th has at most items - k of each. */
    s->pool = take(memory, &used, (items + 2) * (items + 2) * word);
    return used;
}

/* Lists the shares of every item. */
static void list_shares(search *s) {
    const search_problem *p = s->p;
    for (int32_t i = 0; i <= p->items; ++i)
        s->share_from[i] = 0;
    for (int32_t k = 0; k < p->shares; ++k) {
        ++s->share_from[p->share_output[k]];
        ++s->share_from[p->share_input[k]];
    }
    for (int32_t i = 0; i < p->items; ++i)
        s->share_from[i + 1] += s->share_from[i];
    for (int32_t k = p->shares - 1; k >= 0; --k) { /* from behind: then each begins at its first */
        s->share_of[--s->share_from[p->share_output[k]]] = k;
        s->share_of[--s->share_from[p->share_input[k]]] = k;
    }
}

int32_t search_abi(void);
size_t search_memory(const search_problem *p);
int32_t search_run(const search_problem *p, const int32_t *order, int32_t crowded, int64_t limit,
                   void *memory, int32_t *offsets, int64_t *visited);

int32_t search_abi(void) {
    return ABI;
}

/* Bytes that search_run needs. */
size_t search_memory(const search_problem *p) {
    search s;
    return carve(&s, p, NULL);
}

/*
 * One run: FOUND with offsets, IMPOSSIBLE, or LIMIT after `limit` nodes. `order`: items by rank;
 * `crowded`: whether items with more waiting units come first, and rank decides between equals;
 * `memory`: aligned for 8 bytes; `visited`: the nodes. The table stays valid from run to run.
 */
int32_t search_run(const search_problem *p, const int32_t *order, int32_t crowded, int64_t limit,
                   void *memory, int32_t *offsets, int64_t *visited) {
    search s = {.p = p, .order = order, .crowded = crowded};
    (void)carve(&s, p, memory);
    list_shares(&s);
    for (int32_t x = 0; x < p->sections; ++x)
        s.rest[x] = s.cut[x] = 0;
    for (int32_t k = 0; k < p->items; ++k) {
        s.rank[order[k]] = k;
        s.level[k] = lowest(p, k, p->floor[k]);
        s.waiting[k] = 0;
        s.offset[k] = 0;
    }
    for (int32_t k = 0; k < p->items; ++k) {
        count_rest(&s, k, 1);
        s.waiting[k] = 1;
    }
    const part whole = {0, 0, 0, 0, -1};
    bool alive = split(&s, order, p->items, -1, whole);
    while (alive && s.agenda_count > 0 && s.visited < limit) {
        const part of = s.agenda[--s.agenda_count];
        const int32_t index = s.node_count;
        alive = go_on(&s, open_node(&s, &of) ? index : of.parent);
    }
    *visited = s.visited;
    for (int32_t k = 0; k < p->items; ++k)
        offsets[k] = s.offset[k];
    return !alive ? IMPOSSIBLE : s.agenda_count > 0 ? LIMIT : FOUND;
}
