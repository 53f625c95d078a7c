/* What the parts of the depthwise convolution share, C and assembly.
 *
 * The inputs of some output columns and 16 channels are spread over scratch: for each input column
 * and each four rows, 16 words, one a channel, of these rows' bytes. So a channel's words are 64
 * bytes apart, and a gathering load brings in 16 taps. Padding is spread as well, as the zero
 * point: the sums know no border.
 *
 * A sum x is requantised to x + round(x * (factor - 1)), which VQRDMLAH computes: so factors of up
 * to 2, a shift to the left by one bit, cost what all others do. Layers with greater ones, or whose
 * sums may be 2^30 or more where there is such a shift, are NN_MVE_GENERAL.
 *
 *   nn_mve_depthwise_rows.c       the walk over tiles of outputs
 *   nn_mve_spread.S               spreads the inputs
 *   nn_mve_depthwise_small.S      up to 16 columns of a channel at a time: 3 x 3 and the like
 *   nn_mve_depthwise_any.S        up to four columns of a channel at a time, any kernel
 *   nn_mve_depthwise_column.S     one column, four channels at a time: where columns are few
 *   nn_mve_depthwise_general.c    any kernel and any factor
 */
#ifndef NN_MVE_DEPTHWISE_H
#define NN_MVE_DEPTHWISE_H

#define WORD_PITCH 64 /* bytes from a column's words to the next one's, of the same rows */

/* Offsets in nn_mve_rows, nn_mve_tile and nn_mve_column. */
#define ROWS_STEP 16
#define ROWS_APART 32

#define TILE_PLACE 0
#define TILE_OFFSETS 16
#define TILE_LOW 32
#define TILE_HIGH 48
#define TILE_FOURS 64
#define TILE_RECORD 80
#define TILE_ZERO_POINT 88
#define TILE_DOWN 96
#define TILE_NEXT_PLACE 100
#define TILE_NEXT_OUT 104
#define TILE_STORED 108

#define TILE_AHEAD (7 * WORD_PITCH)  /* small: `place` lies so far behind the first words */
#define PLACE_AHEAD (6 * WORD_PITCH) /* of columns */

#define COLUMN_PLACE 0
#define COLUMN_NUMBERS 16
#define COLUMN_LOW 32
#define COLUMN_RECORD 40
#define COLUMN_ZERO_POINT 48

#ifndef __ASSEMBLER__
#include "nn_mve.h"

/* Bytes from output to output that offsets of 16 bits hold seven of; else columns are computed one
 * by one. */
#define NN_MVE_MAX_ACROSS (65535 / 7)

/* Four input rows under the taps of one output row: the address of column 0's channel 0, and bytes
 * from column to column. Where there is padding: 16 zero points, and 0. */
typedef struct {
    uint32_t row[4];
    int32_t step[4];
    int32_t apart; /* bytes between the words of a column and of the next one */
} nn_mve_rows;

NN_MVE_AT(nn_mve_rows, step, ROWS_STEP);
NN_MVE_AT(nn_mve_rows, apart, ROWS_APART);

#define NN_MVE_FEW_GROUPS 2 /* of rows, which lie on the stack; more are in scratch */

typedef struct nn_mve_depthwise nn_mve_depthwise;

/* The words that a tile of outputs of row y reads: of `count` columns from the first on. */
typedef struct {
    int32_t y, first, count;
} nn_mve_words;

/* What the tiles of one call share. */
struct nn_mve_depthwise {
    const nn_conv_geometry *geometry;
    const nn_mve_head *head;
    const nn_view *in, *out;
    int32_t across;          /* bytes from output to output of a tile */
    int32_t pitch;           /* bytes from an input column's words to the next one's */
    int32_t step;            /* of a vector's four words: from one to the next */
    uint32_t met;            /* their numbers are modulo 2^n; 2^n - 1 */
    int32_t groups, vectors; /* of four rows each; of a channel's weights: g and n */
    int32_t record;          /* bytes of a channel's constants */
    int32_t columns;         /* of input under an output */
    int32_t tile;            /* output columns computed together, at most */
    int32_t apart;           /* bytes from an output's words to the next one's */
    int8_t *zeros;           /* scratch: 16 zero points; behind them the rows, if they are many */
    int8_t *words;           /* scratch: the spread inputs */
    /* NULL, or who spreads `channels` channels from c on, where columns are no columns of the
     * input. */
    void (*spread)(const nn_mve_depthwise *d, const nn_mve_words *w, int32_t c, int32_t channels);
};

/* The constants of output channel c. */
static inline const int8_t *nn_mve_record(const nn_mve_depthwise *d, int32_t c) {
    return (const int8_t *)(d->head + 1) + 16 + c * d->record;
}

/* Spreads `count` columns of `channels` channels, 16 at most, which begin `offset` bytes into the
 * rows. Of three rows or four; the words of the next column follow, or those of other rows lie
 * between them (`apart`); `all`: of 16 channels. */
typedef void nn_mve_spread(int8_t *to, const nn_mve_rows *rows, int32_t offset, int32_t count,
                           int32_t channels);
nn_mve_spread nn_mve_spread_3_all, nn_mve_spread_3, nn_mve_spread_3_apart;
nn_mve_spread nn_mve_spread_4, nn_mve_spread_4_apart;

/* Some output columns of up to 16 channels, one channel after the other. */
typedef struct {
    uint32x4_t place;     /* of the first output's words; small: TILE_AHEAD behind */
    uint16x8_t offsets;   /* from the first output: of eight outputs, in the sums' order */
    int16x8_t low, high;  /* clamps */
    uint16x8_t fours;     /* of four outputs, in even elements */
    const int8_t *record; /* the first channel's constants */
    int32_t channels;
    int32_t zero_point; /* in 16 bits; above them how far it is from channel to channel */
    int8_t *out;
    int32_t down;       /* small: from the first eight outputs to the others */
                        /* any: from an output's words to the next one's */
    int32_t next_place; /* from where a channel leaves `place` to the next channel's */
    int32_t next_out;   /* from the second part of a channel's outputs to the next channel's */
    int32_t stored;     /* predicate of the last store */
} nn_mve_tile;

NN_MVE_AT(nn_mve_tile, offsets, TILE_OFFSETS);
NN_MVE_AT(nn_mve_tile, low, TILE_LOW);
NN_MVE_AT(nn_mve_tile, high, TILE_HIGH);
NN_MVE_AT(nn_mve_tile, fours, TILE_FOURS);
NN_MVE_AT(nn_mve_tile, record, TILE_RECORD);
NN_MVE_AT(nn_mve_tile, zero_point, TILE_ZERO_POINT);
NN_MVE_AT(nn_mve_tile, down, TILE_DOWN);
NN_MVE_AT(nn_mve_tile, next_place, TILE_NEXT_PLACE);
NN_MVE_AT(nn_mve_tile, next_out, TILE_NEXT_OUT);
NN_MVE_AT(nn_mve_tile, stored, TILE_STORED);

/* Computes so many columns, or up to three fewer, of kernels of up to four rows and three columns,
 * with a stride of 1 or 2. */
typedef void nn_mve_tile_run(const nn_mve_tile *tile);
nn_mve_tile_run nn_mve_depthwise_4_by1, nn_mve_depthwise_8_by1, nn_mve_depthwise_12_by1;
nn_mve_tile_run nn_mve_depthwise_16_by1, nn_mve_depthwise_4_by2, nn_mve_depthwise_8_by2;

/* Computes up to four columns of kernels of so many vectors, with any stride. */
nn_mve_tile_run nn_mve_depthwise_any_1, nn_mve_depthwise_any_2, nn_mve_depthwise_any_3,
    nn_mve_depthwise_any_4;

/* One output column of some channels, a multiple of four. */
typedef struct {
    uint32x4_t place;     /* PLACE_AHEAD behind the first channel's words */
    uint32x4_t numbers;   /* of four channels' numbers, less what the first load adds */
    int32_t low, high;    /* clamps */
    const int8_t *record; /* the first channel's constants */
    int32_t fours;        /* of channels */
    int32_t zero_point;
    int8_t *out;
} nn_mve_column;

NN_MVE_AT(nn_mve_column, numbers, COLUMN_NUMBERS);
NN_MVE_AT(nn_mve_column, low, COLUMN_LOW);
NN_MVE_AT(nn_mve_column, record, COLUMN_RECORD);
NN_MVE_AT(nn_mve_column, zero_point, COLUMN_ZERO_POINT);

/* Computes a column of kernels of so many vectors. */
typedef void nn_mve_column_run(const nn_mve_column *column);
nn_mve_column_run nn_mve_depthwise_column_1, nn_mve_depthwise_column_2, nn_mve_depthwise_column_3,
    nn_mve_depthwise_column_4;

/* The outputs of a window. Expects 16 zero points where d->zeros points if a tap may lie above the
 * input or below it. */
void nn_mve_depthwise_rows(const nn_mve_depthwise *d, const nn_window *window);

/* Computes `count` columns of `channels` channels, whose constants are at `record`, in any mode. */
void nn_mve_depthwise_general(const nn_mve_depthwise *d, const int8_t *record, int32_t channels,
                              int32_t count, int8_t *out);

/* Up to four rows and three columns, stride 1 or 2. */
static inline int nn_mve_is_small(const nn_conv_geometry *g) {
    return g->kernel_h <= 4 && g->kernel_w <= 3 && g->stride_w <= 2;
}

static inline int32_t nn_mve_row_groups(const nn_conv_geometry *g) {
    return (g->kernel_h + 3) >> 2;
}

static inline int32_t nn_mve_tap_vectors(const nn_conv_geometry *g) {
    return (g->kernel_w * nn_mve_row_groups(g) + 3) >> 2;
}

/* Output columns that are computed together: as many as fit about 1 KB of scratch. */
static inline int32_t nn_mve_tile_columns(const nn_conv_geometry *g) {
    if (!nn_mve_is_small(g)) {
        return 4;
    }
    return g->stride_w == 1 ? 16 : 8;
}

/* Bytes of scratch for the rows of a tall kernel. */
static inline int32_t nn_mve_rows_bytes(const nn_conv_geometry *g) {
    const int32_t groups = nn_mve_row_groups(g);
    return groups > NN_MVE_FEW_GROUPS ? groups * (int32_t)sizeof(nn_mve_rows) : 0;
}

/* Where the parts of constants and scratch begin. */
static inline nn_mve_depthwise nn_mve_depthwise_open(const nn_conv_geometry *geometry,
                                                     const void *constants, const nn_view *in,
                                                     const nn_view *out, void *scratch) {
    nn_mve_depthwise d;
    d.geometry = geometry;
    d.head = (const nn_mve_head *)constants;
    d.in = in;
    d.out = out;
    d.across = out->pixel_stride * geometry->dilation_w;
    d.groups = nn_mve_row_groups(geometry);
    d.vectors = nn_mve_tap_vectors(geometry);
    d.columns = geometry->kernel_w;
    d.record = 16 * d.vectors + 16;
    d.tile = d.across > NN_MVE_MAX_ACROSS ? 1 : nn_mve_tile_columns(geometry);
    d.pitch = d.groups * WORD_PITCH;
    d.step = WORD_PITCH;
    d.met = 3;
    d.apart = geometry->stride_w * d.pitch;
    d.zeros = (int8_t *)scratch;
    d.words = d.zeros + 16 + nn_mve_rows_bytes(geometry);
    d.spread = NULL;
    return d;
}

/* The words of the first output's first channel: addresses of four in a row. */
static inline uint32x4_t nn_mve_first_words(const nn_mve_depthwise *d) {
    const uint32x4_t numbers = vandq_u32(vidupq_n_u32(0, 1), vdupq_n_u32(d->met));
    const uint32x4_t steps = vmulq_n_u32(numbers, (uint32_t)d->step);
    return vaddq_n_u32(steps, (uint32_t)(uintptr_t)d->words);
}
#endif

#endif
