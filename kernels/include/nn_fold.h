/* Poolings in plain C, of int8 and int16: one number of all the elements that a window meets, four
 * channels at a time.
 */
#ifndef NN_FOLD_H
#define NN_FOLD_H

#include "nn_area.h"

/* A pixel's function by itself: its loops have the registers alone. */
#define NN_FOLD_PIXEL static __attribute__((noinline)) void

/* What has been found so far and one more element. */
typedef int32_t nn_fold_step(int32_t found, int32_t value);

/* An output element of what was found among `elements` elements, before it is clamped. */
typedef int32_t nn_fold_end(int32_t found, int32_t elements);

static inline int32_t nn_fold_sum(int32_t found, int32_t value) {
    return found + value;
}

/* Where the elements of a window lie. */
typedef struct {
    const int8_t *row;      /* the first one; of it, */
    int32_t place, run;     /* where the window begins, its pixels up to the end of the ring, */
    int32_t rest;           /* and those behind, from the ring's first on */
    int32_t rows, apart;    /* bytes from pixel to pixel, */
    int32_t row_step, ring; /* from row to row, and of all rows, */
    const int8_t *end;      /* which end here */
} nn_fold_walk;

static inline nn_fold_walk nn_fold_walk_of(const nn_area *window) {
    const nn_view *in = window->in;
    nn_fold_walk walk = {.row = in->data, .apart = in->pixel_stride, .row_step = in->row_stride};
    walk.ring = in->ring_rows * in->row_stride;
    walk.end = in->data + walk.ring;
    if (window->rows > 0 && window->columns > 0) {
        const int32_t column = nn_column(in, window->x);
        walk.row = nn_row(in, window->y);
        walk.rows = window->rows;
        walk.place = column * in->pixel_stride;
        walk.run = nn_min(window->columns, in->ring_cols - column);
        walk.rest = window->columns - walk.run;
    }
    return walk;
}

static inline int32_t nn_fold_element(const int8_t *values, int32_t i, int32_t bytes) {
    return bytes == 1 ? values[i] : ((const int16_t *)(const void *)values)[i];
}

/* Folds `count` channels, at most 4, from channel c on, whose elements have `bytes` bytes. */
static inline __attribute__((always_inline)) void
nn_fold_channels(int32_t found[4], const nn_fold_walk *walk, int32_t c, int32_t count,
                 int32_t start, nn_fold_step *step, int32_t bytes) {
    const int8_t *row = walk->row + c * bytes, *const end = walk->end + c * bytes;
    const int32_t apart = walk->apart, place = walk->place;
    int32_t f[4] = {start, start, start, start};
    for (int32_t rows = walk->rows; rows > 0; rows--) {
        const int8_t *value = row + place;
        int32_t run = walk->run, rest = walk->rest;
#pragma GCC unroll 1
        while (run > 0) {
            for (int32_t i = 0; i < count; i++) {
                f[i] = step(f[i], nn_fold_element(value, i, bytes));
            }
            value += apart;
            if (--run == 0) { /* what lies behind the end of the ring */
                run = rest;
                rest = 0;
                value = row;
            }
        }
        row += walk->row_step;
        row -= row >= end ? walk->ring : 0;
    }
    for (int32_t i = 0; i < count; i++) {
        found[i] = f[i];
    }
}

/* All channels of one output pixel. `elements`: those of the window that count. */
static inline __attribute__((always_inline)) void
nn_fold_elements(const nn_area *window, const nn_pool_constants *constants, int8_t *out,
                 int32_t start, nn_fold_step *step, nn_fold_end *end, int32_t elements,
                 int32_t bytes) {
    const int32_t channels = window->in->channels;
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const nn_fold_walk walk = nn_fold_walk_of(window);
    int32_t found[4];
    for (int32_t c = 0, count; c < channels; c += count) {
        count = channels - c >= 4 ? 4 : 1;
        if (count == 4) {
            nn_fold_channels(found, &walk, c, 4, start, step, bytes);
        } else {
            nn_fold_channels(found, &walk, c, 1, start, step, bytes);
        }
#pragma GCC unroll 1
        for (int32_t i = 0; i < count; i++) {
            const int32_t value = nn_clamp(end(found[i], elements), low, high);
            if (bytes == 1) {
                out[c + i] = (int8_t)value;
            } else {
                ((int16_t *)(void *)out)[c + i] = (int16_t)value;
            }
        }
    }
}

static inline __attribute__((always_inline)) void
nn_fold_pixel(const nn_area *window, const nn_pool_constants *constants, int8_t *out, int32_t start,
              nn_fold_step *step, nn_fold_end *end, int32_t elements) {
    nn_fold_elements(window, constants, out, start, step, end, elements, 1);
}

/* The same of int16. */
static inline __attribute__((always_inline)) void
nn_fold_wide_pixel(const nn_area *window, const nn_pool_constants *constants, int8_t *out,
                   int32_t start, nn_fold_step *step, nn_fold_end *end, int32_t elements) {
    nn_fold_elements(window, constants, out, start, step, end, elements, 2);
}

/* The end of a maximum. */
static inline int32_t nn_fold_found(int32_t found, int32_t elements) {
    (void)elements;
    return found;
}

#endif
