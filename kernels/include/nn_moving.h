/* Networks that run on a moving window: rings of rows, and sums or maxima over a window's rows.
 *
 * A ring lies in the network's state: its rows in the order of their places, then, aligned to 4
 * bytes, the place of the oldest row. */
#ifndef NN_MOVING_H
#define NN_MOVING_H

#include "nn_arith.h"

/* `count` rows of an input, from row `first` on; row 0 of a ring is its oldest one. */
typedef struct {
    int32_t input, first, count;
} nn_rows_piece;

/* `ring_rows`: for each input the rows of the ring that it is, or 0. */
typedef struct {
    int32_t row_bytes, count;
    const nn_rows_piece *pieces;
    const int32_t *ring_rows;
} nn_rows_geometry;

/* Joins rows of several inputs. */
void nn_join_rows(const nn_rows_geometry *geometry, const int8_t *const *inputs, int8_t *out);

/* `count` rows of the input, from row `first` on, replace the oldest ones of a ring of `rows`. */
typedef struct {
    int32_t row_bytes, rows, first, count;
} nn_ring_geometry;

void nn_ring_push(const nn_ring_geometry *geometry, const int8_t *in, void *state);

/* The window's last rows are the first input. If the network computes its first ones anew as well,
 * their sums or maxima are the second one. The first `entering` of the last rows enter the ring,
 * which holds `rows` sums or maxima of a row for each channel, elements of `bytes` bytes. Behind a
 * ring of sums stand the sums of all its rows. */
typedef struct {
    int32_t rows, entering, bytes, width, channels, last_rows, has_first;
} nn_sliding_geometry;

/* Sums of each channel over all pixels of the input, modulo 2^32. */
void nn_row_sums_s8(const int8_t *in, int32_t pixels, int32_t channels, int32_t *sums);
void nn_row_sums_s16(const int8_t *in, int32_t pixels, int32_t channels, int32_t *sums);
/* Sums of each channel over the window: int32, modulo 2^32. */
void nn_sliding_sum_s8(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                       void *state, int8_t *out);
void nn_sliding_sum_s16(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                        void *state, int8_t *out);
/* Maxima of each channel over the window. */
void nn_sliding_max_s8(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                       void *state, int8_t *out);
void nn_sliding_max_s16(const nn_sliding_geometry *geometry, const int8_t *const *inputs,
                        void *state, int8_t *out);

/* The place of a ring's oldest row, behind its rows. */
static inline int32_t *nn_ring_place(void *ring, int32_t bytes) {
    return (int32_t *)(void *)((int8_t *)ring + ((bytes + 3) & ~3));
}

/* The same of a ring that is only read. */
static inline int32_t nn_ring_oldest(const int8_t *ring, int32_t bytes) {
    return *(const int32_t *)(const void *)(ring + ((bytes + 3) & ~3));
}

/* The place after `count` more rows of a ring; `count` is at most `rows`. */
static inline int32_t nn_ring_after(int32_t place, int32_t count, int32_t rows) {
    const int32_t after = place + count;
    return after >= rows ? after - rows : after;
}

#endif
