/* DEPTHWISE_CONV_2D, depth multiplier 1, kernels of up to 8 rows and 16 words, no dilation along
 * rows, Helium: a channel's taps as dot products of 16 bytes. nn_mve_depthwise.h says how.
 *
 * constants: nn_mve_head; 16 zeros; then for each channel its taps as words of four rows, and
 * int32[4]. With g = ceil(kernel_h / 4), word x * g + i has rows 4 i to 4 i + 3 of column x, zeros
 * below the last row. A channel has n = ceil(kernel_w * g / 4) vectors of four words, filled up
 * with zeros. Its numbers are its bias, its factor less 1 as a fraction of 2^31, its shift to the
 * right (0 or less), and 0; in the mode NN_MVE_GENERAL bias, multiplier and shift as in nn_channel.
 */
#include "nn_mve_depthwise.h"

#define CHANNELS 16   /* spread together */
#define FEW 3         /* output columns that are best computed one by one */
#define MAX_GROUPS 2  /* of four rows */
#define MAX_SOURCES 3 /* runs of a ring of columns that a tile may lie in */
/* Bytes from output to output that offsets of 16 bits hold seven of; else columns are computed one
 * by one. */
#define MAX_ACROSS (65535 / 7)

/* Columns that lie at even distances in the rows: `count` from `offset` on; where their words go.
 */
typedef struct {
    int32_t offset, count;
    int8_t *to;
} source;

/* The inputs under some outputs of a row, but for padding on the left and on the right. */
typedef struct {
    nn_mve_rows rows[MAX_GROUPS];
    source sources[MAX_SOURCES];
    int32_t number; /* of sources */
} tile_inputs;

/* Up to four rows and three columns, stride 1 or 2. */
static inline int is_small(const nn_conv_geometry *g) {
    return g->kernel_h <= 4 && g->kernel_w <= 3 && g->stride_w <= 2;
}

static inline int32_t row_groups(const nn_conv_geometry *g) {
    return (g->kernel_h + 3) >> 2;
}

static inline int32_t tap_vectors(const nn_conv_geometry *g) {
    return (g->kernel_w * row_groups(g) + 3) >> 2;
}

/* Output columns that are computed together: as many as fit about 1 KB of scratch. */
static inline int32_t tile_columns(const nn_conv_geometry *g) {
    if (!is_small(g)) {
        return 4;
    }
    return g->stride_w == 1 ? 16 : 8;
}

/* Where the parts of constants and scratch begin. */
static inline nn_mve_depthwise open(const nn_conv_geometry *geometry, const void *constants,
                                    const nn_view *in, const nn_view *out, void *scratch) {
    nn_mve_depthwise d;
    d.geometry = geometry;
    d.head = (const nn_mve_head *)constants;
    d.records = (const int8_t *)(d.head + 1) + 16;
    d.in = in;
    d.out = out;
    d.groups = row_groups(geometry);
    d.vectors = tap_vectors(geometry);
    d.record = 16 * d.vectors + 16;
    d.tile = out->pixel_stride > MAX_ACROSS ? 1 : tile_columns(geometry);
    d.apart = geometry->stride_w * d.groups * WORD_PITCH;
    d.zeros = (int8_t *)scratch;
    d.words = d.zeros + 16;
    return d;
}

/* ---- inputs -----------------------------------------------------------------------------------
 */

/* The rows under the taps of an output row whose first one is `top`. */
static inline void find_rows(const nn_mve_depthwise *d, int32_t top, tile_inputs *inputs) {
    const nn_conv_geometry *g = d->geometry;
    const nn_view *in = d->in;
    const nn_taps valid = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
    const int8_t *row = in->data, *end = in->data + in->ring_rows * in->row_stride;
    const int32_t step = g->dilation_h % in->ring_rows * in->row_stride;
    if (valid.first < valid.end) {
        row = nn_row(in, top + valid.first * g->dilation_h);
    }
    for (int32_t ky = 0; ky < 4 * d->groups; ky++) {
        nn_mve_rows *const rows = inputs->rows + (ky >> 2);
        const int inside = ky >= valid.first && ky < valid.end;
        rows->row[ky & 3] = (uint32_t)(uintptr_t)(inside ? row : d->zeros);
        rows->step[ky & 3] = inside ? in->pixel_stride : 0;
        if (inside) {
            row += step;
            row -= row >= end ? end - in->data : 0;
        }
    }
}

/* Finds out where the columns [x, end) are. Those of padding are the same for all channels: their
 * words are filled in at once. */
static inline void find_sources(const nn_mve_depthwise *d, int32_t x, int32_t end,
                                tile_inputs *inputs) {
    const nn_view *in = d->in;
    const int32_t pitch = d->groups * WORD_PITCH;
    int8_t *to = d->words;
    source *s = inputs->sources;
    for (int32_t count; x < end; x += count, to += count * pitch) {
        if (x < 0 || x >= in->width) {
            count = x < 0 ? nn_min(end, 0) - x : end - x;
            nn_mve_fill(to, d->head->common.input_zero_point, count * pitch);
        } else {
            const int32_t place = nn_column(in, x);
            count = nn_min(nn_min(end, in->width) - x, in->ring_cols - place);
            s->offset = place * in->pixel_stride;
            s->count = count;
            s->to = to;
            s++;
        }
    }
    inputs->number = (int32_t)(s - inputs->sources);
}

static inline nn_mve_spread *spread_for(const nn_mve_depthwise *d, int32_t group,
                                        int32_t channels) {
    if (d->geometry->kernel_h - 4 * group >= 4) {
        return d->groups > 1 ? nn_mve_spread_4_apart : nn_mve_spread_4;
    }
    if (d->groups > 1) {
        return nn_mve_spread_3_apart;
    }
    return channels == CHANNELS ? nn_mve_spread_3_all : nn_mve_spread_3;
}

/* Spreads `channels` channels from c on. */
static inline void spread(const nn_mve_depthwise *d, const tile_inputs *inputs, int32_t c,
                          int32_t channels) {
    for (int32_t group = 0; group < d->groups; group++) {
        nn_mve_spread *const one = spread_for(d, group, channels);
        for (const source *s = inputs->sources; s < inputs->sources + inputs->number; s++) {
            one(s->to + group * WORD_PITCH, inputs->rows + group, s->offset + c, s->count,
                channels);
        }
    }
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

static inline void set_tile(nn_mve_tile *t, const nn_mve_depthwise *d, int8_t *out, int32_t count) {
    static const uint16_t order[8] = {0, 1, 4, 5, 2, 3, 6, 7}, fours[8] = {0, 8, 1, 8, 2, 8, 3, 8};
    const nn_conv_constants *common = &d->head->common;
    const int32_t across = d->out->pixel_stride, quarter = (count - 1) >> 2;
    const uint16x8_t last = vldrhq_u16((quarter & 1) != 0 ? order : fours);
    t->place = nn_mve_first_words(d);
    t->offsets = vmulq_n_u16(vldrhq_u16(order), (uint16_t)across);
    t->low = vdupq_n_s16((int16_t)common->clamp_min);
    t->high = vdupq_n_s16((int16_t)common->clamp_max);
    t->fours = vmulq_n_u16(vldrhq_u16(fours), (uint16_t)across);
    t->record = d->records;
    t->zero_point = common->output_zero_point;
    t->out = out;
    t->stored = vcmpltq_n_s16(vreinterpretq_s16_u16(last), (int16_t)(count - 8 * (quarter >> 1)));
    if (is_small(d->geometry)) {
        t->place = vsubq_n_u32(t->place, 2 * WORD_PITCH);
        t->down = 8 * across;
        t->next_out = 1 - t->down;
        t->next_place = 4 - 4 * (quarter + 1) * d->apart;
    } else { /* up to four columns */
        t->down = d->apart - 4 * WORD_PITCH * (d->vectors - 1);
        t->next_place = 4 - 4 * d->apart;
    }
}

static inline nn_mve_tile_run *tile_for(const nn_mve_depthwise *d, int32_t count) {
    static nn_mve_tile_run *const by1[4] = {nn_mve_depthwise_4_by1, nn_mve_depthwise_8_by1,
                                            nn_mve_depthwise_12_by1, nn_mve_depthwise_16_by1};
    static nn_mve_tile_run *const by2[2] = {nn_mve_depthwise_4_by2, nn_mve_depthwise_8_by2};
    static nn_mve_tile_run *const any[4] = {nn_mve_depthwise_any_1, nn_mve_depthwise_any_2,
                                            nn_mve_depthwise_any_3, nn_mve_depthwise_any_4};
    if (!is_small(d->geometry)) {
        return any[d->vectors - 1];
    }
    return (d->geometry->stride_w == 1 ? by1 : by2)[(count - 1) >> 2];
}

/* Output columns one channel after the other. */
static NN_NOINLINE void compute_many(const nn_mve_depthwise *d, const tile_inputs *inputs,
                                     int32_t count, int8_t *out) {
    nn_mve_tile_run *const compute = tile_for(d, count);
    const int32_t channels = d->in->channels;
    nn_mve_tile tile;
    set_tile(&tile, d, out, count);
    for (int32_t c = 0; c < channels; c += CHANNELS) {
        tile.channels = nn_min(CHANNELS, channels - c);
        spread(d, inputs, c, tile.channels);
        compute(&tile);
        tile.record += CHANNELS * d->record;
        tile.out += CHANNELS;
    }
}

/* Output columns one by one. */
static NN_NOINLINE void compute_few(const nn_mve_depthwise *d, const tile_inputs *inputs,
                                    int32_t count, int8_t *out) {
    static nn_mve_column_run *const computes[4] = {
        nn_mve_depthwise_column_1, nn_mve_depthwise_column_2, nn_mve_depthwise_column_3,
        nn_mve_depthwise_column_4};
    nn_mve_column_run *const compute = computes[d->vectors - 1];
    const nn_conv_constants *common = &d->head->common;
    const uint32x4_t four = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)d->record);
    const int8_t *numbers = d->records + 16 * d->vectors - 4 * d->record;
    const int32_t ahead = d->vectors < 4 ? 4 * WORD_PITCH * (d->vectors - 1) - 4 : -4;
    const int32_t channels = d->in->channels;
    nn_mve_column column;
    column.numbers = vaddq_n_u32(four, (uint32_t)(uintptr_t)numbers);
    column.low = vdupq_n_s16((int16_t)common->clamp_min);
    column.high = vdupq_n_s16((int16_t)common->clamp_max);
    column.record = d->records;
    column.zero_point = common->output_zero_point;
    for (int32_t c = 0; c < channels; c += CHANNELS) {
        const int32_t some = nn_min(CHANNELS, channels - c);
        spread(d, inputs, c, some);
        column.place = vaddq_n_u32(nn_mve_first_words(d), (uint32_t)ahead);
        column.fours = some >> 2;
        column.out = out + c;
        for (int32_t i = count; i > 0; i--, column.out += d->out->pixel_stride) {
            compute(&column);
            column.place = vaddq_n_u32(column.place, (uint32_t)d->apart);
        }
        column.record += some * d->record;
        column.numbers = vaddq_n_u32(column.numbers, (uint32_t)(some * d->record));
    }
}

/* Output columns in a mode that is rare. */
static NN_NOINLINE void compute_general(const nn_mve_depthwise *d, const tile_inputs *inputs,
                                        int32_t count, int8_t *out) {
    for (int32_t c = 0; c < d->in->channels; c += CHANNELS) {
        const int32_t some = nn_min(CHANNELS, d->in->channels - c);
        spread(d, inputs, c, some);
        nn_mve_depthwise_general(d, c, some, count, out + c);
    }
}

/* Output columns [x, x + count), a run from `out` on. */
static inline void compute_tile(const nn_mve_depthwise *d, tile_inputs *inputs, int32_t x,
                                int32_t count, int8_t *out) {
    const nn_conv_geometry *g = d->geometry;
    const int32_t left = x * g->stride_w - g->pad_left;
    find_sources(d, left, left + (count - 1) * g->stride_w + g->kernel_w, inputs);
    if (d->head->mode == NN_MVE_GENERAL) {
        compute_general(d, inputs, count, out);
    } else if (count <= FEW && d->in->channels % 4 == 0) {
        compute_few(d, inputs, count, out);
    } else {
        compute_many(d, inputs, count, out);
    }
}

int32_t nn_depthwise_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    const int32_t columns = nn_min(tile_columns(geometry), (out->width + 7) & ~7);
    const int32_t before_last = (columns - 1) * geometry->stride_w * row_groups(geometry);
    (void)in;
    return 16 + WORD_PITCH * (before_last + 4 * tap_vectors(geometry));
}

void nn_depthwise_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_mve_depthwise d = open(geometry, constants, in, out, scratch);
    tile_inputs inputs;
    vstrbq_s8(d.zeros, vdupq_n_s8((int8_t)d.head->common.input_zero_point));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t count;
        find_rows(&d, y * g->stride_h - g->pad_top, &inputs);
        for (int32_t x = window->x0; x < window->x1; x += count) {
            count = nn_run(out, x, nn_min(d.tile, window->x1 - x));
            compute_tile(&d, &inputs, x, count, nn_out_pixel(out, y, x));
        }
    }
}
