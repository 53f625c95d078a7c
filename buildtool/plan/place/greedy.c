/*
 * Arena offsets by greedy orders: the placements for the orders of greedy.py.
 *
 * No global state, no allocation: the caller provides all memory. Sizes and offsets are in bytes;
 * all sizes and alignments together stay below 2^61.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ABI = 1, FITS = 2, FEW = 24 };

static const int64_t ANY_HEIGHT = (int64_t)1 << 62;
static const uint64_t SEED = 0x2545F491;

/* Arrays as in greedy.py; `below` and `above` have the links of each way one after the other. */
typedef struct {
    int64_t items, links, ways, orders;
    const int64_t *size, *alignment, *pinned;
    const int64_t *start, *neighbour, *below, *above;
    const int64_t *order; /* order by order */
    int64_t least, variations;
} greedy_problem;

typedef struct {
    int64_t low, high;
} interval;

/* A placement to make: its order, its fit, and its way up. */
typedef struct {
    const greedy_problem *p;
    const int64_t *below, *above;
    bool tightest; /* the tightest gap rather than the lowest */
    interval *forbidden;
} trial;

int32_t greedy_abi(void) {
    return ABI;
}

/* The number of 64-bit words that greedy_run works in. */
size_t greedy_memory(const greedy_problem *p) {
    return (size_t)(7 * p->items + 2);
}

static int compare(const void *a, const void *b) {
    const interval *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->high < y->high ? -1 : x->high > y->high;
}

static void sort(interval *all, int64_t count) {
    if (count > FEW) {
        qsort(all, (size_t)count, sizeof *all, compare);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        const interval moved = all[i];
        int64_t at = i;
        for (; at > 0 && compare(&all[at - 1], &moved) > 0; at--)
            all[at] = all[at - 1];
        all[at] = moved;
    }
}

/* The lowest or the tightest offset outside of all of the open intervals, which ascend. */
static int64_t gap(const interval *forbidden, int64_t count, int64_t alignment, bool tightest) {
    int64_t offset = 0, width = -1, chosen = -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t low = forbidden[i].low, high = forbidden[i].high;
        if (offset <= low && !tightest)
            return offset;
        if (offset <= low && (chosen < 0 || low - offset < width)) {
            width = low - offset;
            chosen = offset;
        }
        if (offset < high)
            offset = (high + alignment - 1) / alignment * alignment;
    }
    return chosen < 0 ? offset : chosen;
}

/* Places the items without an offset (-1) in this order; false where one would end above `most`. */
static bool place(const trial *t, const int64_t *order, int64_t *offset, int64_t most) {
    const greedy_problem *p = t->p;
    for (int64_t k = 0; k < p->items; k++) {
        const int64_t i = order[k];
        int64_t count = 0;
        if (offset[i] >= 0)
            continue;
        for (int64_t link = p->start[i]; link < p->start[i + 1]; link++) {
            const int64_t at = offset[p->neighbour[link]];
            if (at >= 0)
                t->forbidden[count++] = (interval){at - t->below[link], at + t->above[link]};
        }
        sort(t->forbidden, count);
        offset[i] = gap(t->forbidden, count, p->alignment[i], t->tightest);
        if (offset[i] + p->size[i] > most)
            return false;
    }
    return true;
}

static int64_t height(const greedy_problem *p, const int64_t *offset) {
    int64_t top = 0;
    for (int64_t i = 0; i < p->items; i++)
        if (offset[i] + p->size[i] > top)
            top = offset[i] + p->size[i];
    return top;
}

/* The generator's next choice. */
static int64_t choice(uint64_t *state, int64_t choices) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 33) % (uint64_t)choices);
}

/* An item at the top of a placement, or one that it collides with. */
static int64_t near_top(const greedy_problem *p, const int64_t *order, const int64_t *offset,
                        int64_t top, uint64_t *state) {
    int64_t peaks = 0, peak = 0;
    for (int64_t i = 0; i < p->items; i++)
        peaks += offset[i] + p->size[i] == top;
    int64_t left = choice(state, peaks);
    for (int64_t k = 0; k < p->items; k++) {
        peak = order[k];
        if (offset[peak] + p->size[peak] == top && left-- == 0)
            break;
    }
    const int64_t pick = choice(state, 1 + p->start[peak + 1] - p->start[peak]);
    return pick ? p->neighbour[p->start[peak] + pick - 1] : peak;
}

/* Varies the best placement's order; `tried` and `next` are scratch. Returns the best height. */
static int64_t vary(const trial *t, int64_t *order, int64_t *next, int64_t *current, int64_t *tried,
                    int64_t *best, int64_t top) {
    const greedy_problem *p = t->p;
    const size_t bytes = (size_t)p->items * sizeof *order;
    uint64_t state = SEED;
    int64_t lowest = top;
    memcpy(current, best, bytes);
    for (int64_t n = 0; n < p->variations && lowest > p->least; n++) {
        const int64_t moved = near_top(p, order, current, top, &state);
        int64_t from = 0, at = 0;
        while (order[from] != moved)
            from++;
        const int64_t to = choice(&state, from ? from : 1);
        for (int64_t k = 0; k < p->items; k++) {
            at += at == to;
            if (order[k] != moved)
                next[at++] = order[k];
        }
        next[to] = moved;
        for (int64_t k = 0; k < p->items; k++)
            tried[next[k]] = k < to ? current[next[k]] : p->pinned[next[k]];
        if (!place(t, next, tried, top))
            continue;
        memcpy(order, next, bytes);
        memcpy(current, tried, bytes);
        top = height(p, current);
        if (top < lowest) {
            lowest = top;
            memcpy(best, current, bytes);
        }
    }
    return lowest;
}

/*
 * Finds the lowest placement: its offsets, and the number of the way up of these offsets.
 * `memory` has greedy_memory() words, and `offset` an entry per item. Returns the height.
 */
int64_t greedy_run(const greedy_problem *p, int64_t *memory, int64_t *offset, int64_t *way) {
    int64_t *order = memory, *next = order + p->items, *current = next + p->items;
    int64_t *tried = current + p->items;
    const size_t bytes = (size_t)p->items * sizeof *order;
    interval *forbidden = (interval *)(void *)(tried + p->items);
    trial chosen = {p, p->below, p->above, false, forbidden};
    int64_t top = ANY_HEIGHT;
    const int64_t *chosen_order = p->order;
    for (int64_t n = 0; n < p->orders * FITS * p->ways; n++) {
        const int64_t up = n % p->ways;
        const trial t = {p, p->below + up * p->links, p->above + up * p->links,
                         n / p->ways % FITS != 0, forbidden};
        const int64_t *by = p->order + n / p->ways / FITS * p->items;
        memcpy(tried, p->pinned, bytes);
        if (!place(&t, by, tried, top == ANY_HEIGHT ? top : top - 1))
            continue;
        const int64_t reached = height(p, tried);
        if (reached < top) { /* pinned items may be as high */
            top = reached;
            chosen = t;
            chosen_order = by;
            *way = up;
            memcpy(offset, tried, bytes);
        }
        if (top <= p->least)
            return top;
    }
    memcpy(order, chosen_order, bytes);
    return vary(&chosen, order, next, current, tried, offset, top);
}
