/*
 * Regions that end at a cut within a limit of bytes; regions.py says what a label is.
 *
 * Lower bounds tell which labels are hopeless. For every cut inside a region: the least weight with
 * which everything before the cut can be run, by the bytes that the part of the region before it
 * needs, the ring at the cut included ("stairs": with at least this weight, bytes without windows
 * and bytes with the largest window). Three things are left out, so that the bounds are below the
 * truth: how far open residuals lag (they lag at least as far as single rows make them), that
 * windows on both sides of the cut share their memory (each side's is counted alone), and how many
 * rows go into a ring at a time beyond what that does to the shortest one. Bounds are made from the
 * first cut on, and made anew when `best` of a cut before has risen.
 *
 * Profiles say how far a region has got when it writes each row of its output, and what the output
 * may then lie on. A profile has a number for every row of the region's output (of a pooling's: one
 * for all): rows of a tensor that are there by then, or the first byte of one that is still to be
 * read. Other profiles have a number for every row of a tensor inside: the lowest row of it, or of
 * another one, that is still read while this row is made. Profiles are kept once each, known by
 * their place.
 *
 * One handle serves one search. All its memory is its own; search_free gives it back. Whatever
 * cannot be had of memory ends the call with OUT_OF_MEMORY, and the handle can then only be freed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ABI = 5, FAILED = -2, OUT_OF_MEMORY = -1, MOST_STAIRS = 32, MOST_PACES = 64 };
enum {
    HEIGHT,
    TALL,
    KERNEL,
    STRIDE,
    PAD,
    ROWS,
    ROW,
    MAKES,
    MAIN_ROW,
    MAIN_WHOLE,
    SOURCE,
    SOURCE_ROW,
    SOURCE_LAST,
    SOURCE_SIZE,
    STREAMED,
    FEEDS,
    LAST_READER,
    SIZE,
    WHOLE,
    ACCUMULATES,
    ELEMENT_COLUMNS
};
enum {
    LIVE,
    HELD,
    LOWEST_FIRST,
    LEAST_ROWS,
    LEAST_WANTED,
    FORM_START,
    BESIDE_START,
    ROW_START,
    CUT_COLUMNS
};
enum {
    BACK, /* elements before the last one that the block begins */
    STEP,
    WINDOW,
    SUMS,
    EXTRA,
    LEAST_EXTRA,
    AXIS_KERNEL,
    AXIS_STRIDE,
    AXIS_PAD,
    LATE,
    SECTION,
    BANDS, /* whether it is a group of bands, */
    AHEAD, /* and its steps before its first row */
    UP,    /* rows that the first step makes more than the others, */
    DOWN,  /* and the last one */
    FORM_COLUMNS
};
enum { ROOT, BYTES, IN_RING, NEEDED_WHOLE, BESIDE_COLUMNS };
enum { ASKED_OF, MADE_AT, LOW_AT, READ_FROM, READ_AFTER, SECTION_COLUMNS };

static const int64_t INFINITE = (int64_t)1 << 62;
static const int64_t NEVER = (int64_t)1 << 60;
static const int64_t SUMMED = (int64_t)1 << 32;

typedef int64_t (*extra_function)(int64_t form, int64_t wanted);

/* Tables of rows of 64-bit numbers; the columns are those above. Sections: where in `rows` a list
 * begins. */
typedef struct {
    int64_t count, alignment, follows_rows,
        limit; /* follows_rows: an output may lie over rows of its region's input */
    const int64_t *elements, *cuts, *forms, *besides, *sections, *rows;
    int64_t *best;          /* cut -> least weight beyond the elements' own before it */
    const int64_t *version; /* cut -> the round in which `best` of any cut before it last rose */
    extra_function
        extra; /* of a form of which so few rows are wanted; below -INFINITE: it failed */
} labels_problem;

typedef struct {
    int64_t most_bytes, round, end, enough, most_labels;
    int64_t weight, floor, labels, first, bytes, own, blocks; /* blocks: -1 for one element alone */
} labels_region;

typedef struct {
    int64_t weight, plain, windowed;
} stair;

typedef struct {
    int64_t under;
    stair *stairs;
    size_t count, size;
} staircase; /* of one cut, while its bounds are made */

typedef struct {
    int64_t under;
    int32_t from, count; /* in the cut's stairs */
} bound;

typedef struct {
    bound *bounds;
    stair *stairs;
    size_t bounds_size, stairs_size;
    int32_t count;
    int64_t made_at;
} cut_bounds;

typedef struct {
    int64_t tensor, whole;
    int32_t lows, at; /* profiles */
} beside;

typedef struct {
    int64_t weight, rings, window, wanted;
    int32_t boundary, low, asked, besides, beside_count, form, parent;
    bool dropped;
} label;

typedef struct {
    int64_t weight, rings, window;
    int32_t label;
} rival;

typedef struct {
    rival *rivals;
    size_t count, size;
} contest; /* the labels of one boundary that none of them beats */

typedef struct {
    int64_t least, inside;
    int32_t first, label;
} entry;

typedef struct {
    size_t at;
    int64_t sum; /* of its numbers, each as far as SUMMED */
    int32_t length;
    uint32_t hash;
} profile;

typedef struct {
    labels_problem p;
    cut_bounds *bounds;
    int64_t fresh, fresh_round; /* bounds of cuts up to `fresh` are those of this round */
    int64_t *growth_ring, *growth_more, *base, *delivered;
    bool *blocked;
    int32_t *last, *row;   /* form -> element; form -> row of `forms` */
    staircase *staircases; /* scratch of make_bounds */
    size_t staircase_count, staircases_size;
    /* one region's search */
    label *labels;
    beside *besides;
    entry *heap;
    profile *profiles;
    int64_t *numbers;
    int32_t *slots;    /* profiles by hash */
    contest *contests; /* one for each boundary */
    int64_t *scratch, *progress_made, *progress_low;
    beside *found;
    size_t label_count, labels_size, beside_count, besides_size, heap_count, heap_size,
        profile_count, profiles_size, number_count, numbers_size, slots_size, scratch_size,
        found_size;
    int32_t found_count;
    int64_t progress_length, most_bytes, result, held, end, weight;
    labels_region *region;
    int32_t best_form, best_parent;
    int64_t *extra_keys, *extra_values;
    size_t extra_count, extra_size;
    int status;
} handle;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t of_element(const handle *h, int64_t element, int column) {
    return h->p.elements[element * ELEMENT_COLUMNS + column];
}

static int64_t of_cut(const handle *h, int64_t cut, int column) {
    return h->p.cuts[cut * CUT_COLUMNS + column];
}

static int64_t of_form(const handle *h, int64_t form, int column) {
    return h->p.forms[(int64_t)h->row[form] * FORM_COLUMNS + column];
}

/* The element that a block begins with. */
static int64_t first_of(const handle *h, int64_t form) {
    return h->last[form] - of_form(h, form, BACK);
}

static const int64_t *section_rows(const handle *h, int64_t section, int column) {
    return h->p.rows + h->p.sections[section * SECTION_COLUMNS + column];
}

static int64_t round_up(const handle *h, int64_t bytes) {
    return (bytes + h->p.alignment - 1) / h->p.alignment * h->p.alignment;
}

/* Room for `wanted` things in an array that grows; false, and a status, where there is no memory.
 */
static bool grow(handle *h, void *array, size_t *size, size_t wanted, size_t each) {
    void *old, *larger;
    size_t more = *size < 16 ? 16 : *size;
    if (wanted <= *size)
        return true;
    while (more < wanted)
        more *= 2;
    memcpy(&old, array, sizeof old); /* whatever it points to */
    larger = realloc(old, more * each);
    if (!larger) {
        h->status = OUT_OF_MEMORY;
        return false;
    }
    memcpy(array, &larger, sizeof larger);
    *size = more;
    return true;
}

/* ---- rows ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t kernel, stride, pad;
} axis;

static axis form_axis(const handle *h, int64_t form) {
    return (axis){of_form(h, form, AXIS_KERNEL), of_form(h, form, AXIS_STRIDE),
                  of_form(h, form, AXIS_PAD)};
}

/* The row axis through elements [first, last]. */
static axis through(const handle *h, int64_t first, int64_t last) {
    axis a = {1, 1, 0};
    for (int64_t e = first; e <= last; e++) {
        int64_t kernel = of_element(h, e, KERNEL), stride = of_element(h, e, STRIDE),
                pad = of_element(h, e, PAD);
        a = (axis){(kernel - 1) * a.stride + a.kernel, stride * a.stride, pad * a.stride + a.pad};
    }
    return a;
}

static int64_t high(axis a, int64_t rows) {
    return (rows - 1) * a.stride - a.pad + a.kernel;
}

static int64_t low(axis a, int64_t row) {
    return row * a.stride - a.pad;
}

/* The steps of a block: plan/schedule/pace.py. */
typedef struct {
    int64_t height, step, first, last;
} pace;

static pace form_pace(const handle *h, int64_t form) {
    int64_t step = of_form(h, form, STEP);
    return (pace){of_element(h, h->last[form], HEIGHT), step, step + of_form(h, form, UP),
                  step + of_form(h, form, DOWN)};
}

static bool same_pace(pace a, pace b) {
    return a.step == b.step && a.first == b.first && a.last == b.last;
}

/* One past the last row of the step that begins with this one. */
static int64_t step_end(pace p, int64_t row) {
    if (p.height - row <= p.last)
        return p.height;
    return least(p.height, row + (row ? p.step : p.first));
}

/* The first row of the step that makes this one. */
static int64_t step_begin(pace p, int64_t row) {
    int64_t begin = row < p.first ? 0 : p.first + (row - p.first) / p.step * p.step, last = 0;
    if (p.height > p.last)
        last = p.first + most(0, (p.height - p.last - p.first + p.step - 1) / p.step * p.step);
    return least(begin, last);
}

/* The rows that whole steps have made when so many are needed. */
static int64_t made_rows(pace p, int64_t needed) {
    return needed > 0 ? step_end(p, step_begin(p, needed - 1)) : 0;
}

/* Rows of a block's input that it asks for to make so many, of `tall` that there are. */
static int64_t asked_rows(const handle *h, int64_t form, int64_t made, int64_t tall) {
    int64_t section = of_form(h, form, SECTION);
    if (section >= 0)
        return section_rows(h, section, ASKED_OF)[made];
    return least(tall, most(0, high(form_axis(h, form), made)));
}

/* How far a block has come, by row of its input: into progress_made, progress_low. */
static bool progress(handle *h, int64_t form) {
    int64_t first = first_of(h, form), section = of_form(h, form, SECTION),
            tall = of_element(h, first, TALL);
    pace own = form_pace(h, form);
    int64_t height = own.height, begin = -own.step * of_form(h, form, AHEAD);
    axis a = form_axis(h, form);
    if ((size_t)tall > h->scratch_size / 4) {
        size_t wanted = (size_t)tall * 4, a1 = h->scratch_size, a2 = a1, a3 = a1;
        if (!grow(h, &h->scratch, &a1, wanted, sizeof(int64_t)) ||
            !grow(h, &h->progress_made, &a2, wanted, sizeof(int64_t)) ||
            !grow(h, &h->progress_low, &a3, wanted, sizeof(int64_t)))
            return false;
        h->scratch_size = a1;
    }
    h->progress_length = tall;
    if (section >= 0) {
        memcpy(h->progress_made, section_rows(h, section, MADE_AT), (size_t)tall * sizeof(int64_t));
        memcpy(h->progress_low, section_rows(h, section, LOW_AT), (size_t)tall * sizeof(int64_t));
        return true;
    }
    for (int64_t x = 0; x < tall; x++) {
        while (begin < height && least(tall, most(0, high(a, step_end(own, begin)))) <= x)
            begin = step_end(own, begin);
        h->progress_made[x] = most(0, begin);
        h->progress_low[x] = begin < height ? most(0, low(a, begin)) : tall;
    }
    return true;
}

/* Rows of a ring of which `asked` are asked for. `filled`: the steps of what fills it. The ring's
 * tensor has `height` rows: more than what fills it makes, if that is not what the element before
 * it makes. */
static int64_t held_rows(const int64_t *lows, int64_t height, pace filled, int64_t asked) {
    int64_t found = 0;
    filled.height = height;
    for (int64_t x = 0, end; x < asked; x = end) {
        end = step_end(filled, x);
        found = most(found, end - least(lows[x], x));
    }
    return found;
}

/* The steps of what delivers a tensor row by row. */
static const pace SINGLE_ROWS = {0, 1, 1, 1};

/* ---- what holds whatever the limit: least rings at cuts, and the blocks that end there ---------
 */

/* Least bytes of the ring at a block's input, by the steps that fill it; after `progress` of the
 * block. */
static int64_t least_ring(const handle *h, int64_t form, pace filled) {
    int64_t first = first_of(h, form), last = h->last[form];
    int64_t made = least(of_cut(h, last + 1, LEAST_WANTED), of_element(h, last, HEIGHT));
    int64_t asked = asked_rows(h, form, made, h->progress_length);
    int64_t rows = held_rows(h->progress_low, h->progress_length, filled, asked);
    rows = most(rows, least(of_element(h, first - 1, ROWS), of_cut(h, first, LEAST_ROWS)));
    return round_up(h, rows * of_element(h, first - 1, ROW));
}

/* Whether a tensor that a block reads besides has to be whole; `operand`: a row of besides, of
 * `element`. */
static bool has_to_be_whole(const handle *h, int64_t first, int64_t element,
                            const int64_t *operand) {
    return !operand[IN_RING] || through(h, first, element).stride != 1;
}

static bool reads_whole(const handle *h, int64_t form) {
    int64_t first = first_of(h, form), tensor = first ? of_element(h, first - 1, MAKES) : -1;
    for (int64_t e = first; e <= h->last[form]; e++)
        for (int64_t b = of_cut(h, e, BESIDE_START); b < of_cut(h, e + 1, BESIDE_START); b++) {
            const int64_t *operand = h->p.besides + b * BESIDE_COLUMNS;
            if (operand[ROOT] != tensor)
                continue;
            if (of_form(h, form, SECTION) >= 0 ? operand[NEEDED_WHOLE]
                                               : has_to_be_whole(h, first, e, operand))
                return true;
        }
    return false;
}

/* Of the rings at one cut: base (by the steps of what ends there) and growth of what begins there.
 */
static bool prepare_cut(handle *h, int64_t cut, const int64_t *begins, int64_t begin_count) {
    int64_t from = of_cut(h, cut - 1, FORM_START), to = of_cut(h, cut, FORM_START);
    pace steps[MOST_PACES];
    int64_t bases[MOST_PACES], rings[MOST_PACES], count = 0;
    for (int64_t f = from; f < to; f++) {
        int64_t s = 0;
        while (s < count && !same_pace(steps[s], form_pace(h, f)))
            s++;
        if (s == count && count < MOST_PACES) {
            steps[count] = form_pace(h, f);
            bases[count++] = begin_count ? INFINITE : 0;
        }
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < begin_count; i++) {
            int64_t f = begins[i], ring = INFINITE, more = INFINITE;
            if (!progress(h, f))
                return false;
            for (int64_t s = 0; s < count; s++) {
                rings[s] = least_ring(h, f, steps[s]);
                bases[s] = pass ? bases[s] : least(bases[s], rings[s]);
                ring = least(ring, rings[s]);
                more = least(more, rings[s] - bases[s]);
            }
            h->growth_ring[f] = count ? ring : 0;
            h->growth_more[f] = count ? more : 0;
        }
    for (int64_t f = from; f < to; f++)
        for (int64_t s = 0; s < count; s++)
            if (same_pace(steps[s], form_pace(h, f)))
                h->base[f] = bases[s];
    return true;
}

static bool prepare(handle *h) {
    int64_t forms = of_cut(h, h->p.count, FORM_START), *order, *start;
    order = calloc((size_t)forms + 1, sizeof *order);
    start = calloc((size_t)h->p.count + 2, sizeof *start);
    if (!order || !start) {
        free(order);
        free(start);
        return false;
    }
    for (int64_t e = 0; e < h->p.count; e++)
        for (int64_t f = of_cut(h, e, FORM_START); f < of_cut(h, e + 1, FORM_START); f++) {
            h->last[f] = (int32_t)e;
            h->row[f] = (int32_t)(of_cut(h, e, ROW_START) + f - of_cut(h, e, FORM_START));
            start[first_of(h, f) + 1]++;
        }
    for (int64_t e = 0; e < h->p.count; e++)
        start[e + 1] += start[e];
    for (int64_t f = 0; f < forms; f++)
        order[start[first_of(h, f)]++] = f;
    bool done = true;
    for (int64_t cut = 1; done && cut <= h->p.count;
         cut++) { /* start[c] is by now the end of cut c's */
        int64_t from = start[cut - 1], to = cut < h->p.count ? start[cut] : from;
        done = prepare_cut(h, cut, order + from, to - from);
    }
    for (int64_t f = 0; done && f < forms; f++) {
        int64_t first = first_of(h, f), made;
        h->blocked[f] = !first || !of_element(h, first - 1, FEEDS) || reads_whole(h, f);
        h->delivered[f] = of_element(h, first, SOURCE_SIZE);
        if (of_element(h, first, STREAMED) && (done = progress(h, f))) {
            made =
                least(of_cut(h, h->last[f] + 1, LEAST_WANTED), of_element(h, h->last[f], HEIGHT));
            made = held_rows(h->progress_low, h->progress_length, SINGLE_ROWS,
                             asked_rows(h, f, made, h->progress_length));
            h->delivered[f] = round_up(h, made * of_element(h, first, SOURCE_ROW));
        }
    }
    free(order);
    free(start);
    return done;
}

/* ---- lower bounds -------------------------------------------------------------------------- */

/* Puts one more among stairs, so that each weight has the least bytes of all that weigh no more. */
static bool insert(handle *h, staircase *to, stair s) {
    size_t below = 0, above = to->count;
    if (!grow(h, &to->stairs, &to->size, to->count + 1, sizeof(stair)))
        return false;
    while (below < above) {
        size_t middle = (below + above) / 2;
        if (to->stairs[middle].weight <= s.weight)
            below = middle + 1;
        else
            above = middle;
    }
    if (below) {
        stair known = to->stairs[below - 1];
        if (known.plain <= s.plain && known.windowed <= s.windowed)
            return true;
        s.plain = least(s.plain, known.plain);
        s.windowed = least(s.windowed, known.windowed);
        below -= known.weight == s.weight;
    }
    /* what weighs more needs no more either; what needs no less than the one before it goes */
    stair before = s;
    size_t i = below, kept = below;
    for (; i < to->count && (to->stairs[i].plain > s.plain || to->stairs[i].windowed > s.windowed);
         i++) {
        stair next = to->stairs[i];
        next.plain = least(next.plain, s.plain);
        next.windowed = least(next.windowed, s.windowed);
        if (next.weight == s.weight ||
            (next.plain == before.plain && next.windowed == before.windowed))
            continue;
        to->stairs[kept++] = before = next;
    }
    if (i < to->count && to->stairs[i].plain == before.plain &&
        to->stairs[i].windowed == before.windowed)
        i++;
    memmove(to->stairs + kept, to->stairs + i, (to->count - i) * sizeof(stair));
    to->count -= i - kept;
    memmove(to->stairs + below + 1, to->stairs + below, (to->count - below) * sizeof(stair));
    to->count++;
    to->stairs[below] = s;
    return true;
}

/* Two stairs become one that is below both, until there are few. */
static void thin(staircase *of) {
    while (of->count > MOST_STAIRS) {
        size_t half = (of->count + 1) / 2;
        for (size_t i = 0; i < half; i++) {
            size_t second = 2 * i + 1 < of->count ? 2 * i + 1 : of->count - 1;
            stair s = {of->stairs[2 * i].weight, of->stairs[second].plain,
                       of->stairs[second].windowed};
            of->stairs[i] = s;
        }
        of->count = half;
    }
}

static bool collect(handle *h, int64_t under, stair s) {
    size_t i = 0, size = h->staircases_size;
    if (s.weight > h->p.limit || s.windowed > h->most_bytes)
        return true;
    while (i < h->staircase_count && h->staircases[i].under != under)
        i++;
    if (i == h->staircase_count) {
        if (!grow(h, &h->staircases, &h->staircases_size, i + 1, sizeof(staircase)))
            return false;
        if (size != h->staircases_size) /* what is new has no memory of its own yet */
            memset(h->staircases + size, 0, (h->staircases_size - size) * sizeof(staircase));
        h->staircases[i].under = under;
        h->staircases[i].count = 0;
        h->staircase_count++;
    }
    return insert(h, &h->staircases[i], s);
}

static bool collect_all(handle *h, int64_t cut) {
    for (int64_t f = of_cut(h, cut - 1, FORM_START); f < of_cut(h, cut, FORM_START); f++) {
        int64_t first = first_of(h, f), extra = of_form(h, f, LEAST_EXTRA),
                window = of_form(h, f, WINDOW);
        int64_t ring = of_form(h, f, SUMS) + h->base[f], source = of_element(h, first, SOURCE_SIZE);
        int64_t plain = of_cut(h, first, LIVE) - source + h->delivered[f] + ring;
        bool apart = !h->p.follows_rows || of_element(h, first, SOURCE_LAST) >= h->p.count;
        source = of_element(h, first, STREAMED) ? h->delivered[f] : source;
        if (!collect(h, apart ? 0 : source,
                     (stair){h->p.best[first] + extra, plain, plain + window}))
            return false;
        if (h->blocked[f])
            continue;
        ring += h->growth_more[f];
        for (int32_t i = 0; i < h->bounds[first].count; i++) {
            const bound *b = &h->bounds[first].bounds[i];
            for (int32_t k = 0; k < b->count; k++) {
                stair s = h->bounds[first].stairs[b->from + k];
                plain = s.plain + ring;
                stair grown = {s.weight + extra, plain, most(s.windowed + ring, plain + window)};
                if (!collect(h, b->under, grown))
                    return false;
            }
        }
    }
    return true;
}

/* Makes the bounds of a cut, from those of all cuts before it. */
static bool make_bounds(handle *h, int64_t cut) {
    cut_bounds *made = &h->bounds[cut];
    size_t count = 0;
    made->count = 0;
    h->staircase_count = 0;
    if (!of_element(h, cut - 1, FEEDS))
        return true;
    if (!collect_all(h, cut) ||
        !grow(h, &made->bounds, &made->bounds_size, h->staircase_count, sizeof(bound)))
        return false;
    for (size_t i = 0; i < h->staircase_count; i++) {
        staircase *of = &h->staircases[i];
        thin(of);
        if (!grow(h, &made->stairs, &made->stairs_size, count + of->count, sizeof(stair)))
            return false;
        memcpy(made->stairs + count, of->stairs, of->count * sizeof(stair));
        made->bounds[made->count++] = (bound){of->under, (int32_t)count, (int32_t)of->count};
        count += of->count;
    }
    return true;
}

/* Brings the bounds of all cuts below `end` up to this round. */
static bool refresh(handle *h, int64_t round, int64_t end) {
    if (h->fresh_round != round) {
        h->fresh_round = round;
        h->fresh = 0;
    }
    for (; h->fresh < end - 1; h->fresh++) {
        int64_t cut = h->fresh + 1;
        if (h->bounds[cut].made_at < h->p.version[cut]) {
            if (!make_bounds(h, cut))
                return false;
            h->bounds[cut].made_at = h->p.version[cut];
        }
    }
    return true;
}

/* Least weight of everything before a block inside a region that needs `rings` and `window` bytes
 * after the cut before it; INFINITE where nothing keeps the limit. */
static int64_t least_before(const handle *h, int64_t form, int64_t rings, int64_t window) {
    int64_t within = h->most_bytes - rings - h->growth_more[form], best = INFINITE;
    const cut_bounds *of = &h->bounds[first_of(h, form)];
    if (h->most_bytes - rings - h->growth_ring[form] < window + h->held)
        return INFINITE;
    for (int32_t i = 0; i < of->count; i++) {
        int64_t room = within - most(0, h->result - of->bounds[i].under);
        const stair *s = of->stairs + of->bounds[i].from;
        int32_t below = 0, above = of->bounds[i].count;
        while (below < above) {
            int32_t middle = (below + above) / 2;
            if (s[middle].plain <= room - window && s[middle].windowed <= room)
                above = middle;
            else
                below = middle + 1;
        }
        if (below < of->bounds[i].count)
            best = least(best, s[below].weight);
    }
    return best;
}

/* ---- profiles ------------------------------------------------------------------------------ */

/* Where the profile of `length` numbers in scratch is kept, or -1. */
static int32_t place(handle *h, int64_t length) {
    const int64_t *values = h->scratch;
    uint64_t hash = (uint64_t)length;
    int64_t sum = 0;
    for (int64_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)values[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        sum += least(values[i], SUMMED);
    }
    if (h->profile_count * 2 >= h->slots_size) {
        size_t size = h->slots_size ? h->slots_size * 2 : 256;
        int32_t *slots = malloc(size * sizeof *slots);
        if (!slots) {
            h->status = OUT_OF_MEMORY;
            return -1;
        }
        memset(slots, 0xFF, size * sizeof *slots);
        for (size_t i = 0; i < h->profile_count; i++) {
            size_t at = h->profiles[i].hash & (size - 1);
            while (slots[at] >= 0)
                at = (at + 1) & (size - 1);
            slots[at] = (int32_t)i;
        }
        free(h->slots);
        h->slots = slots;
        h->slots_size = size;
    }
    size_t at = (uint32_t)hash & (h->slots_size - 1);
    for (; h->slots[at] >= 0; at = (at + 1) & (h->slots_size - 1)) {
        const profile *known = &h->profiles[h->slots[at]];
        if (known->hash == (uint32_t)hash && known->length == length &&
            !memcmp(h->numbers + known->at, values, (size_t)length * sizeof *values))
            return h->slots[at];
    }
    if (!grow(h, &h->profiles, &h->profiles_size, h->profile_count + 1, sizeof(profile)) ||
        !grow(h, &h->numbers, &h->numbers_size, h->number_count + (size_t)length, sizeof(int64_t)))
        return -1;
    memcpy(h->numbers + h->number_count, values, (size_t)length * sizeof *values);
    h->profiles[h->profile_count] =
        (profile){h->number_count, sum, (int32_t)length, (uint32_t)hash};
    h->number_count += (size_t)length;
    h->slots[at] = (int32_t)h->profile_count;
    return (int32_t)h->profile_count++;
}

/* Forgets the profiles placed since there were `count`: nothing that is kept has one of them. */
static void forget(handle *h, size_t count) {
    while (h->profile_count > count) {
        const profile *last = &h->profiles[--h->profile_count];
        size_t at = last->hash & (h->slots_size - 1);
        while (h->slots[at] != (int32_t)h->profile_count)
            at = (at + 1) & (h->slots_size - 1);
        h->slots[at] = -1; /* it was the last to come, so that none was put behind it */
        h->number_count = last->at;
    }
}

static const int64_t *numbers(const handle *h, int32_t of) {
    return h->numbers + h->profiles[of].at;
}

static int64_t final_number(const handle *h, int32_t of) {
    return numbers(h, of)[h->profiles[of].length - 1];
}

/* Room in scratch. */
static bool room(handle *h, int64_t length) {
    size_t size = h->scratch_size, same = size;
    if ((size_t)length <= size / 4)
        return true;
    if (!grow(h, &h->progress_made, &same, (size_t)length * 4, sizeof(int64_t)))
        return false;
    same = size;
    if (!grow(h, &h->progress_low, &same, (size_t)length * 4, sizeof(int64_t)))
        return false;
    return grow(h, &h->scratch, &h->scratch_size, (size_t)length * 4, sizeof(int64_t));
}

static int32_t made_profile(handle *h, int32_t asked, int64_t form) {
    pace own = form_pace(h, form);
    int32_t length = h->profiles[asked].length;
    if (!room(h, length))
        return -1;
    for (int32_t i = 0; i < length; i++)
        h->scratch[i] = made_rows(own, numbers(h, asked)[i]);
    return place(h, length);
}

static int32_t asked_profile(handle *h, int32_t made, int64_t form) {
    int64_t tall = of_element(h, first_of(h, form) - 1, ROWS);
    int32_t length = h->profiles[made].length;
    if (!room(h, length))
        return -1;
    for (int32_t i = 0; i < length; i++)
        h->scratch[i] = asked_rows(h, form, numbers(h, made)[i], tall);
    return place(h, length);
}

static bool no_worse(const handle *h, int32_t a, int32_t b) {
    const int64_t *x = numbers(h, a), *y = numbers(h, b);
    if (a == b)
        return true;
    if (h->profiles[a].sum < h->profiles[b].sum)
        return false;
    for (int32_t i = 0; i < h->profiles[a].length; i++)
        if (x[i] < y[i])
            return false;
    return true;
}

static int32_t lower(handle *h, int32_t a, int32_t b) {
    int32_t length = h->profiles[a].length;
    if (a == b)
        return a;
    if (!room(h, length))
        return -1;
    for (int32_t i = 0; i < length; i++)
        h->scratch[i] = least(numbers(h, a)[i], numbers(h, b)[i]);
    return place(h, length);
}

/* Rows of its first element's output that a group of bands has when it has made so many rows. */
static int64_t made_first(const handle *h, int64_t form, int64_t rows) {
    for (int64_t e = h->last[form]; e > first_of(h, form); e--)
        rows = least(of_element(h, e - 1, HEIGHT), high(through(h, e, e), rows));
    return rows;
}

/* The first row of its input that a group of bands still reads when it has made so many rows. */
static int64_t band_low(const handle *h, int64_t form, int64_t rows, int64_t final) {
    int64_t first = first_of(h, form), made = made_first(h, form, rows);
    return made < made_first(h, form, final) ? most(0, low(through(h, first, first), most(0, made)))
                                             : NEVER;
}

/* Profile of the first byte of a tensor that an element of a block still has to read when it has
 * made so many rows; `bytes`: of a row of the tensor; `whole`: the element needs all of it. Of a
 * region's last block, the element may still be at the rows that are being written. */
static int32_t reads(handle *h, int32_t made, int64_t form, int64_t element, int64_t bytes,
                     bool whole) {
    int64_t section = of_form(h, form, SECTION);
    pace own = form_pace(h, form);
    bool late = h->last[form] + 1 == h->end &&
                (((uint64_t)of_form(h, form, LATE) >> (h->last[form] - element)) & 1);
    int32_t length = h->profiles[made].length;
    const int64_t *profile = numbers(h, made);
    axis a = section < 0 && !whole ? through(h, element, h->last[form]) : (axis){1, 1, 0};
    if (!room(h, length))
        return -1;
    for (int32_t q = 0; q < length; q++) {
        bool begun = profile[q] < profile[length - 1];
        int64_t row;
        if (whole)
            row = late || begun ? 0 : NEVER;
        else if (section >= 0)
            row = late    ? section_rows(h, section, READ_FROM)[q]
                  : begun ? section_rows(h, section, READ_AFTER)[profile[q]]
                          : NEVER;
        else if (of_form(h, form, BANDS))
            row = late || begun ? band_low(h, form, late ? step_begin(own, q) : profile[q],
                                           profile[length - 1])
                                : NEVER;
        else if (late)
            row = most(0, low(a, step_begin(own, q)));
        else
            row = begun ? most(0, low(a, profile[q])) : NEVER;
        h->scratch[q] = row == NEVER ? NEVER : row * bytes;
    }
    return place(h, length);
}

/* A profile by row of a block's output, by row of its input; after `progress` of the block. */
static int32_t moved(handle *h, int32_t of) {
    int32_t length = h->profiles[of].length;
    for (int64_t x = 0; x < h->progress_length; x++) {
        int64_t made = h->progress_made[x];
        h->scratch[x] = made < length ? numbers(h, of)[made] : NEVER;
    }
    return place(h, h->progress_length);
}

/* By row of a block's input, the row that an element of it is at, in another tensor that it reads;
 * after `progress` of the block. */
static int32_t added(handle *h, int64_t form, int64_t element) {
    axis a = through(h, element, h->last[form]);
    for (int64_t x = 0; x < h->progress_length; x++)
        h->scratch[x] = most(0, low(a, h->progress_made[x]));
    return place(h, h->progress_length);
}

/* ---- labels -------------------------------------------------------------------------------- */

/* Puts what is read besides into `found`, by tensor; false where memory ran out. */
static bool find_beside(handle *h, int64_t form, int64_t first, int64_t e, int32_t made,
                        const int64_t *operand) {
    bool section = of_form(h, form, SECTION) >= 0;
    int32_t lows = reads(h, made, form, e, operand[BYTES], operand[NEEDED_WHOLE] != 0),
            at = added(h, form, e), i = 0;
    bool whole = section || has_to_be_whole(h, first, e, operand);
    if (lows < 0 || at < 0)
        return false;
    while (i < h->found_count && h->found[i].tensor < operand[ROOT])
        i++;
    if (i < h->found_count && h->found[i].tensor == operand[ROOT]) {
        h->found[i].whole |= whole;
        h->found[i].lows = lower(h, h->found[i].lows, lows);
        h->found[i].at = lower(h, h->found[i].at, at);
        return h->found[i].lows >= 0 && h->found[i].at >= 0;
    }
    if (!grow(h, &h->found, &h->found_size, (size_t)h->found_count + 1, sizeof(beside)))
        return false;
    memmove(h->found + i + 1, h->found + i, (size_t)(h->found_count - i) * sizeof(beside));
    h->found[i] = (beside){operand[ROOT], whole, lows, at};
    h->found_count++;
    return true;
}

/* What is read besides by a block that has made rows as marked, and by those after it: into
 * `found`; after `progress` of the block. */
static bool all_beside(handle *h, int64_t form, int32_t after, int32_t made) {
    int64_t first = first_of(h, form), last = h->last[form], tensor = of_element(h, last, MAKES);
    bool section = of_form(h, form, SECTION) >= 0;
    int32_t count = h->labels[after].beside_count;
    h->found_count = 0;
    if (!grow(h, &h->found, &h->found_size, (size_t)count + 1, sizeof(beside)))
        return false;
    for (int32_t i = 0; i < count; i++) {
        beside b = h->besides[h->labels[after].besides + i];
        if (b.tensor == tensor)
            continue;
        b.at = moved(h, b.at);
        if (b.at < 0)
            return false;
        h->found[h->found_count++] = b;
    }
    for (int64_t e = first; e <= last; e++)
        for (int64_t b = of_cut(h, e, BESIDE_START); b < of_cut(h, e + 1, BESIDE_START); b++) {
            const int64_t *operand = h->p.besides + b * BESIDE_COLUMNS;
            if ((!section || operand[NEEDED_WHOLE]) &&
                !find_beside(h, form, first, e, made, operand))
                return false;
        }
    return true;
}

static bool same_key(const handle *h, const label *a, const label *b) {
    if (a->wanted != b->wanted || a->beside_count != b->beside_count)
        return false;
    for (int32_t i = 0; i < a->beside_count; i++)
        if (h->besides[a->besides + i].tensor != h->besides[b->besides + i].tensor)
            return false;
    return true;
}

/* Whether a label is as good as another one that has no less weight, rings and window. */
static bool as_good(const handle *h, int32_t one, int32_t other) {
    const label *a = &h->labels[one], *b = &h->labels[other];
    if (!same_key(h, a, b) || !no_worse(h, a->low, b->low) || !no_worse(h, a->asked, b->asked))
        return false;
    for (int32_t i = 0; i < a->beside_count; i++) {
        const beside *x = &h->besides[a->besides + i], *y = &h->besides[b->besides + i];
        if (x->whole > y->whole || !no_worse(h, x->lows, y->lows) || !no_worse(h, x->at, y->at))
            return false;
    }
    return true;
}

static bool needs_no_more(const rival *a, const rival *b) {
    return a->weight <= b->weight && a->rings <= b->rings && a->window <= b->window;
}

/* Whether the label just put last is kept: not if another one is as good in everything. Those that
 * it beats are dropped. There is room for one more rival. */
static bool keep(handle *h) {
    int32_t own = (int32_t)h->label_count - 1;
    const label *last = &h->labels[own];
    contest *of = &h->contests[last->boundary];
    rival grown = {last->weight, last->rings, last->window, own};
    size_t kept = 0;
    for (size_t i = of->count; i-- > 0;)
        if (needs_no_more(&of->rivals[i], &grown) && as_good(h, of->rivals[i].label, own))
            return false;
    for (size_t i = 0; i < of->count; i++) {
        rival other = of->rivals[i];
        if (needs_no_more(&grown, &other) && as_good(h, own, other.label))
            h->labels[other.label].dropped = true;
        else
            of->rivals[kept++] = other;
    }
    of->rivals[kept] = grown;
    of->count = kept + 1;
    return true;
}

static bool earlier(const entry *a, const entry *b) { /* labels are numbered as they come */
    if (a->least != b->least)
        return a->least < b->least;
    if (a->first != b->first)
        return a->first < b->first;
    return a->inside != b->inside ? a->inside < b->inside : a->label < b->label;
}

static bool push(handle *h, entry e) {
    size_t at = h->heap_count;
    if (!grow(h, &h->heap, &h->heap_size, at + 1, sizeof(entry)))
        return false;
    h->heap_count++;
    for (; at && earlier(&e, &h->heap[(at - 1) / 2]); at = (at - 1) / 2)
        h->heap[at] = h->heap[(at - 1) / 2];
    h->heap[at] = e;
    return true;
}

static entry pop(handle *h) {
    entry top = h->heap[0], moving = h->heap[--h->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->heap_count)
            break;
        child += child + 1 < h->heap_count && earlier(&h->heap[child + 1], &h->heap[child]);
        if (!earlier(&h->heap[child], &moving))
            break;
        h->heap[at] = h->heap[child];
        at = child;
    }
    h->heap[at] = moving;
    return top;
}

/* Bytes of the region's output that may lie on its input, of which `held` bytes are in memory, if
 * it begins with this block. On a ring for rows of a streamed image that only this block reads: the
 * rows that are made after this block. */
static int64_t overlap(handle *h, int64_t form, int32_t after, int32_t made, int64_t held) {
    int64_t first = first_of(h, form), row = of_element(h, h->end - 1, ROW), apart = 0;
    if (of_element(h, first, STREAMED)) {
        if (h->last[form] + 1 == h->end || of_element(h, first, SOURCE_LAST) > h->last[form])
            return 0;
        for (int32_t q = 0; q < h->profiles[made].length; q++)
            if (numbers(h, made)[q] < final_number(h, made))
                apart = (q + 1) * row;
        return most(0, least(held, h->result - round_up(h, apart)));
    }
    int32_t lows = reads(h, made, form, first, of_element(h, first, MAIN_ROW),
                         of_element(h, first, MAIN_WHOLE) != 0);
    if (lows < 0 || !progress(h, form) || !all_beside(h, form, after, made))
        return -1;
    for (int32_t i = 0; i < h->found_count; i++)
        if (h->found[i].tensor == of_element(h, first, SOURCE) &&
            (lows = lower(h, lows, h->found[i].lows)) < 0)
            return -1;
    for (int32_t q = 0; q < h->profiles[lows].length; q++)
        apart = most(apart, (q + 1) * row - numbers(h, lows)[q]);
    return most(0, least(held, h->result - round_up(h, apart)));
}

/* Rows of a streamed image that the region holds at once, if it begins with this block and asks for
 * `asked` of them; all where they are read after the region. NEVER: a later block cannot read it
 * from a ring. -1: no memory. */
static int64_t delivered_rows(handle *h, int64_t form, int32_t after, int32_t made, int64_t asked) {
    int64_t first = first_of(h, form), last = of_element(h, first, SOURCE_LAST);
    int64_t tall = of_element(h, first, TALL);
    int32_t lows;
    if (last >= h->end)
        return tall;
    if (last == first)
        return held_rows(h->progress_low, tall, SINGLE_ROWS, asked);
    if (!all_beside(h, form, after, made))
        return -1;
    memcpy(h->scratch, h->progress_low, (size_t)h->progress_length * sizeof(int64_t));
    lows = place(h, h->progress_length);
    for (int32_t i = 0; lows >= 0 && i < h->found_count; i++)
        if (h->found[i].tensor == of_element(h, first, SOURCE)) {
            if (h->found[i].whole)
                return NEVER;
            lows = lower(h, lows, h->found[i].at);
        }
    return lows < 0 ? -1 : held_rows(numbers(h, lows), tall, SINGLE_ROWS, asked);
}

/* Takes the region that begins with this block if it is the best so far; `grown`: the label with
 * the block, not yet kept. */
static bool complete(handle *h, int64_t form, int32_t after, const label *grown, bool follows) {
    int64_t first = first_of(h, form), total = h->p.best[first] + grown->weight, size, saved = 0;
    int64_t source = of_element(h, first, SOURCE_SIZE), held = source;
    bool streamed = of_element(h, first, STREAMED) != 0;
    int32_t made;
    if (total >= h->weight || total > h->p.limit)
        return true;
    made = made_profile(h, h->labels[after].asked, form);
    if (made < 0)
        return false;
    if (streamed) {
        int64_t tall = of_element(h, first, TALL), rows = final_number(h, made);
        if (!progress(h, form))
            return false;
        rows = delivered_rows(h, form, after, made, asked_rows(h, form, rows, tall));
        if (rows < 0 || rows == NEVER)
            return rows == NEVER;
        held = round_up(h, least(tall, rows) * of_element(h, first, SOURCE_ROW));
    }
    size = grown->rings + grown->window + of_cut(h, first, LIVE) - source + held + h->result;
    if (follows && of_element(h, first, SOURCE_LAST) < h->end) {
        if (size - least(held, h->result) > h->most_bytes)
            return true;
        saved = overlap(h, form, after, made, held);
        if (saved < 0)
            return false;
    }
    if (size - saved <= h->most_bytes) {
        h->weight = total;
        h->region->first = first;
        h->region->bytes = size - saved;
        h->region->own = grown->weight;
        h->best_form = (int32_t)form;
        h->best_parent = after;
    }
    return true;
}

/* Keeps a partial region that may still become the best. */
static bool go_on(handle *h, int64_t form, int32_t after, label grown) {
    int64_t first = first_of(h, form), before;
    contest *among = &h->contests[first];
    int32_t made;
    if (!first || !of_element(h, first - 1, FEEDS) ||
        of_element(h, first - 1, LAST_READER) >= h->end)
        return true;
    before = least_before(h, form, grown.rings, grown.window);
    if (before >= INFINITE || grown.weight + before >= h->weight)
        return true;
    made = made_profile(h, h->labels[after].asked, form);
    if (made < 0 || !progress(h, form) || !all_beside(h, form, after, made))
        return false;
    for (int32_t i = 0; i < h->found_count; i++)
        if (h->found[i].whole && h->found[i].tensor == of_element(h, first - 1, MAKES))
            return true;
    grown.asked = asked_profile(h, made, form);
    if (grown.asked < 0 || !room(h, h->progress_length))
        return false;
    grown.wanted = final_number(h, grown.asked);
    memcpy(h->scratch, h->progress_low, (size_t)h->progress_length * sizeof(int64_t));
    grown.low = place(h, h->progress_length);
    if (grown.low < 0 ||
        !grow(h, &h->besides, &h->besides_size, h->beside_count + (size_t)h->found_count,
              sizeof(beside)) ||
        !grow(h, &h->labels, &h->labels_size, h->label_count + 1, sizeof(label)) ||
        !grow(h, &among->rivals, &among->size, among->count + 1, sizeof(rival)))
        return false;
    grown.besides = (int32_t)h->beside_count;
    grown.beside_count = h->found_count;
    if (h->found_count)
        memcpy(h->besides + h->beside_count, h->found, (size_t)h->found_count * sizeof(beside));
    h->labels[h->label_count++] = grown;
    h->beside_count += (size_t)h->found_count;
    if (!keep(h)) {
        h->label_count--;
        h->beside_count -= (size_t)grown.beside_count;
        return true;
    }
    h->region->labels++;
    return push(h, (entry){grown.weight + before, grown.rings + grown.window, (int32_t)first,
                           (int32_t)h->label_count - 1});
}

/* Aligned bytes of the ring at a label's boundary, by the steps that fill it; -1: no memory. */
static int64_t ring(handle *h, int32_t of, pace filled) {
    int32_t lows = h->labels[of].low;
    if (h->labels[of].boundary == h->end)
        return 0;
    int64_t before = h->labels[of].boundary - 1;
    for (int32_t i = 0; i < h->labels[of].beside_count; i++) {
        const beside *b = &h->besides[h->labels[of].besides + i];
        if (b->tensor == of_element(h, before, MAKES) && (lows = lower(h, lows, b->at)) < 0)
            return -1;
    }
    int64_t rows =
        held_rows(numbers(h, lows), h->profiles[lows].length, filled, h->labels[of].wanted);
    return round_up(h, rows * of_element(h, before, ROW));
}

/* Weight of a block of which only some rows are wanted, which the caller knows; each is asked for
 * once. */
static int64_t extra_of(handle *h, int64_t form, int64_t wanted) {
    int64_t key = form * ((int64_t)1 << 24) + wanted + 1;
    if (h->extra_count * 2 >= h->extra_size) {
        size_t size = h->extra_size ? h->extra_size * 2 : 256;
        int64_t *keys = calloc(size, sizeof *keys), *values = calloc(size, sizeof *values);
        if (!keys || !values) {
            free(keys);
            free(values);
            h->status = OUT_OF_MEMORY;
            return 0;
        }
        for (size_t i = 0; i < h->extra_size; i++)
            if (h->extra_keys[i]) {
                size_t at = (uint64_t)h->extra_keys[i] * 0x9E3779B97F4A7C15u >> 20 & (size - 1);
                while (keys[at])
                    at = (at + 1) & (size - 1);
                keys[at] = h->extra_keys[i];
                values[at] = h->extra_values[i];
            }
        free(h->extra_keys);
        free(h->extra_values);
        h->extra_keys = keys;
        h->extra_values = values;
        h->extra_size = size;
    }
    size_t at = (uint64_t)key * 0x9E3779B97F4A7C15u >> 20 & (h->extra_size - 1);
    for (; h->extra_keys[at]; at = (at + 1) & (h->extra_size - 1))
        if (h->extra_keys[at] == key)
            return h->extra_values[at];
    int64_t value = h->p.extra(form, wanted);
    if (value < -INFINITE) {
        h->status = FAILED;
        return 0;
    }
    h->extra_keys[at] = key;
    h->extra_values[at] = value;
    h->extra_count++;
    return value;
}

static bool expand(handle *h, int32_t of, bool follows) {
    label after = h->labels[of];
    int64_t height = of_element(h, after.boundary - 1, HEIGHT), own = 0;
    pace filled = {0, 0, 0, 0};
    for (int64_t f = of_cut(h, after.boundary - 1, FORM_START);
         f < of_cut(h, after.boundary, FORM_START); f++) {
        if (first_of(h, f) < of_cut(h, h->end, LOWEST_FIRST))
            continue;
        if (!same_pace(form_pace(h, f), filled)) {
            filled = form_pace(h, f);
            if ((own = ring(h, of, filled)) < 0)
                return false;
        }
        label grown = after;
        int64_t extra = of_form(h, f, EXTRA);
        if (after.wanted < height)
            extra = extra_of(h, f, after.wanted);
        if (h->status)
            return false;
        grown.boundary = (int32_t)first_of(h, f);
        grown.weight += extra;
        grown.rings += own + of_form(h, f, SUMS);
        grown.window = most(grown.window, of_form(h, f, WINDOW));
        grown.form = (int32_t)f;
        grown.parent = of;
        grown.dropped = false;
        if (grown.rings + grown.window + h->held > h->most_bytes || grown.weight > h->p.limit)
            continue;
        size_t labels = h->label_count, profiles = h->profile_count;
        if (!complete(h, f, of, &grown, follows) || !go_on(h, f, of, grown))
            return false;
        if (h->label_count == labels)
            forget(h, profiles);
    }
    return true;
}

static bool begin(handle *h, bool follows) {
    int64_t height = of_element(h, h->end - 1, HEIGHT), length = follows ? height : 1;
    h->label_count = h->beside_count = h->heap_count = h->profile_count = h->number_count = 0;
    if (h->slots)
        memset(h->slots, 0xFF, h->slots_size * sizeof *h->slots);
    for (int64_t cut = 0; cut <= h->p.count; cut++)
        h->contests[cut].count = 0;
    if (!room(h, length) || !grow(h, &h->labels, &h->labels_size, 1, sizeof(label)))
        return false;
    for (int64_t i = 0; i < length; i++)
        h->scratch[i] = follows ? i + 1 : height;
    int32_t asked = place(h, length);
    h->labels[h->label_count++] = (label){.wanted = height,
                                          .boundary = (int32_t)h->end,
                                          .low = -1,
                                          .asked = asked,
                                          .form = -1,
                                          .parent = -1};
    return asked >= 0;
}

/* The forms of the best region, first to last, into `blocks`, which has room for a number an
 * element. */
static void tell(const handle *h, labels_region *r, int64_t *blocks) {
    r->blocks = 0;
    for (int32_t form = h->best_form, at = h->best_parent; form >= 0; at = h->labels[at].parent) {
        blocks[r->blocks++] = form;
        form = h->labels[at].form;
    }
}

int32_t labels_abi(void) {
    return ABI;
}

void labels_free(handle *h) {
    if (!h)
        return;
    for (int64_t cut = 0; h->bounds && cut <= h->p.count; cut++) {
        free(h->bounds[cut].bounds);
        free(h->bounds[cut].stairs);
    }
    for (int64_t cut = 0; h->contests && cut <= h->p.count; cut++)
        free(h->contests[cut].rivals);
    for (size_t i = 0; i < h->staircases_size; i++)
        free(h->staircases[i].stairs);
    void *own[] = {h->bounds,     h->growth_ring, h->growth_more,   h->base,         h->delivered,
                   h->blocked,    h->last,        h->row,           h->staircases,   h->labels,
                   h->besides,    h->heap,        h->profiles,      h->numbers,      h->slots,
                   h->contests,   h->scratch,     h->progress_made, h->progress_low, h->found,
                   h->extra_keys, h->extra_values};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    free(h);
}

/* A handle for one search; what the problem points to has to stay. NULL where there is no memory.
 */
handle *labels_new(const labels_problem *p) {
    handle *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->p = *p;
    size_t cuts = (size_t)p->count + 1, forms = (size_t)of_cut(h, p->count, FORM_START) + 1;
    h->bounds = calloc(cuts, sizeof *h->bounds);
    h->growth_ring = calloc(forms, sizeof *h->growth_ring);
    h->growth_more = calloc(forms, sizeof *h->growth_more);
    h->base = calloc(forms, sizeof *h->base);
    h->delivered = calloc(forms, sizeof *h->delivered);
    h->blocked = calloc(forms, sizeof *h->blocked);
    h->last = calloc(forms, sizeof *h->last);
    h->row = calloc(forms, sizeof *h->row);
    h->contests = calloc(cuts, sizeof *h->contests);
    if (!h->bounds || !h->growth_ring || !h->growth_more || !h->base || !h->delivered ||
        !h->blocked || !h->last || !h->row || !h->contests || !prepare(h)) {
        labels_free(h);
        return NULL;
    }
    for (size_t cut = 0; cut < cuts; cut++)
        h->bounds[cut].made_at = -1;
    return h;
}

/* Finds the best way to a cut; stops at once at one of weight `enough`, and after `most_labels`
 * with the best way so far. 0, FAILED or OUT_OF_MEMORY; results in `r`, and the forms of its
 * blocks. */
int32_t labels_run(handle *h, labels_region *r, int64_t *blocks) {
    int64_t alone = r->end - 1;
    bool follows = h->p.follows_rows && !of_element(h, alone, ACCUMULATES);
    h->region = r;
    h->most_bytes = r->most_bytes;
    h->end = r->end;
    h->result = of_element(h, alone, SIZE);
    h->held = of_cut(h, r->end, HELD);
    h->weight = INFINITE;
    h->best_form = h->best_parent = -1;
    r->labels = 1; /* the empty one at the region's end */
    r->first = r->blocks = -1;
    if (of_element(h, alone, WHOLE) <= h->most_bytes && h->p.best[alone] <= h->p.limit) {
        h->weight = h->p.best[alone];
        r->first = alone;
        r->bytes = of_element(h, alone, WHOLE);
        r->own = 0;
    }
    r->weight = r->floor = h->weight;
    if (h->weight <= r->enough)
        return 0;
    if (!refresh(h, r->round, r->end) || !begin(h, follows) || !expand(h, 0, follows))
        return h->status;
    while (h->heap_count && h->weight > r->enough && h->heap[0].least < h->weight) {
        if (r->labels >= r->most_labels)
            break;
        int32_t next = pop(h).label;
        if (!h->labels[next].dropped && !expand(h, next, follows))
            return h->status;
    }
    r->weight = r->floor = h->weight;
    if (h->heap_count && h->weight > r->enough)
        r->floor = least(h->weight, h->heap[0].least);
    if (h->best_form >= 0)
        tell(h, r, blocks);
    return 0;
}
