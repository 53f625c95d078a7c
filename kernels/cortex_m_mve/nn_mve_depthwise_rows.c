/* The walk of the depthwise convolution over tiles of outputs: finds their inputs and chooses who
 * computes them.
 */
#include "nn_mve_depthwise.h"

#define CHANNELS 16   /* spread together */
#define FEW 3         /* output columns that are best computed one by one */
#define MAX_SOURCES 3 /* runs of a ring of columns that a tile may lie in */

/* Columns that lie at even distances in the rows: `count` from `offset` on; where their words go.
 */
typedef struct {
    int32_t offset, count;
    int8_t *to;
} source;

/* The inputs under some outputs of a row, but for padding on the left and on the right. */
typedef struct {
    nn_mve_rows few[NN_MVE_FEW_GROUPS];
    nn_mve_rows *rows; /* in `few`, or in scratch */
    union {
        struct {
            source sources[MAX_SOURCES];
            int32_t number; /* of sources */
        } columns;
        nn_mve_words words; /* where d->spread says who spreads them */
    } of;
} tile_inputs;

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
        rows->step[ky & 3] = inside ? in->pixel_stride * d->geometry->dilation_w : 0;
        if (inside) {
            row += step;
            row -= row >= end ? end - in->data : 0;
        }
    }
}

/* Finds out where `count` columns from x on are. Those of padding are the same for all channels:
 * their words are filled in at once. */
static inline void find_sources(const nn_mve_depthwise *d, int32_t x, int32_t count,
                                tile_inputs *inputs) {
    const nn_view *in = d->in;
    const int32_t pitch = d->pitch, apart = d->geometry->dilation_w;
    const nn_taps inside = nn_valid_taps(x, in->width, count, apart);
    const int32_t zero_point = d->head->common.input_zero_point;
    source *s = inputs->of.columns.sources;
    if (inside.first > 0) {
        nn_mve_fill(d->words, zero_point, inside.first * pitch);
    }
    for (int32_t i = inside.first, some; i < inside.end; i += some, s++) {
        const int32_t place = nn_column(in, x + i * apart);
        some = nn_min(inside.end - i, (in->ring_cols - place + apart - 1) / apart);
        s->offset = place * in->pixel_stride;
        s->count = some;
        s->to = d->words + i * pitch;
    }
    if (inside.end < count) {
        nn_mve_fill(d->words + inside.end * pitch, zero_point, (count - inside.end) * pitch);
    }
    inputs->of.columns.number = (int32_t)(s - inputs->of.columns.sources);
}

static inline nn_mve_spread *spread_for(const nn_mve_depthwise *d, int32_t group,
                                        int32_t channels) {
    if (d->geometry->kernel_h - 4 * group >= 4) {
        return d->pitch > WORD_PITCH ? nn_mve_spread_4_apart : nn_mve_spread_4;
    }
    if (d->groups > 1) {
        return nn_mve_spread_3_apart;
    }
    return channels == CHANNELS ? nn_mve_spread_3_all : nn_mve_spread_3;
}

/* Spreads `channels` channels from c on. */
static inline void spread(const nn_mve_depthwise *d, const tile_inputs *inputs, int32_t c,
                          int32_t channels) {
    if (d->spread != NULL) {
        d->spread(d, &inputs->of.words, c, channels);
        return;
    }
    for (int32_t group = 0; group < d->groups; group++) {
        nn_mve_spread *const one = spread_for(d, group, channels);
        for (const source *s = inputs->of.columns.sources;
             s < inputs->of.columns.sources + inputs->of.columns.number; s++) {
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
    const int32_t across = d->across, quarter = (count - 1) >> 2;
    const uint16x8_t last = vldrhq_u16((quarter & 1) != 0 ? order : fours);
    t->place = nn_mve_first_words(d);
    t->offsets = vmulq_n_u16(vldrhq_u16(order), (uint16_t)across);
    t->low = vdupq_n_s16((int16_t)common->clamp_min);
    t->high = vdupq_n_s16((int16_t)common->clamp_max);
    t->fours = vmulq_n_u16(vldrhq_u16(fours), (uint16_t)across);
    t->record = nn_mve_record(d, 0);
    t->zero_point = (common->output_zero_point & 0xFFFF) | d->geometry->groups << 16;
    t->out = out;
    t->stored = vcmpltq_n_s16(vreinterpretq_s16_u16(last), (int16_t)(count - 8 * (quarter >> 1)));
    if (nn_mve_is_small(d->geometry)) {
        t->place = vaddq_n_u32(t->place, TILE_AHEAD);
        t->down = 8 * across;
        t->next_out = d->geometry->groups - t->down;
        t->next_place = 4;
    } else { /* up to four columns */
        t->down = d->apart;
        t->next_place = 4 - 4 * d->apart;
    }
}

static inline nn_mve_tile_run *tile_for(const nn_mve_depthwise *d, int32_t count) {
    static nn_mve_tile_run *const by1[4] = {nn_mve_depthwise_4_by1, nn_mve_depthwise_8_by1,
                                            nn_mve_depthwise_12_by1, nn_mve_depthwise_16_by1};
    static nn_mve_tile_run *const by2[2] = {nn_mve_depthwise_4_by2, nn_mve_depthwise_8_by2};
    static nn_mve_tile_run *const any[4] = {nn_mve_depthwise_any_1, nn_mve_depthwise_any_2,
                                            nn_mve_depthwise_any_3, nn_mve_depthwise_any_4};
    if (!nn_mve_is_small(d->geometry)) {
        return any[d->vectors - 1];
    }
    return (d->apart == WORD_PITCH ? by1 : by2)[(count - 1) >> 2];
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
        for (int32_t i = 1; i < d->geometry->groups; i++) {
            tile.record += channels * d->record;
            tile.out++;
            compute(&tile);
        }
        tile.record -= (d->geometry->groups - 1) * channels * d->record - CHANNELS * d->record;
        tile.out += CHANNELS * d->geometry->groups - (d->geometry->groups - 1);
    }
}

/* `count` columns of `fours` times four channels from c on, whose words are those from number
 * `from` on. */
static NN_NOINLINE void compute_fours(const nn_mve_depthwise *d, int32_t c, int32_t fours,
                                      int32_t from, int32_t count, int8_t *out) {
    static nn_mve_column_run *const computes[4] = {
        nn_mve_depthwise_column_1, nn_mve_depthwise_column_2, nn_mve_depthwise_column_3,
        nn_mve_depthwise_column_4};
    nn_mve_column_run *const compute = computes[d->vectors - 1];
    const nn_conv_constants *common = &d->head->common;
    const uint32x4_t each = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)d->record);
    nn_mve_column column;
    column.record = nn_mve_record(d, c);
    column.numbers =
        vaddq_n_u32(each, (uint32_t)(uintptr_t)(column.record + 16 * d->vectors - 4 * d->record));
    column.place = vaddq_n_u32(nn_mve_first_words(d), (uint32_t)(PLACE_AHEAD + 4 * from));
    column.low = common->clamp_min;
    column.high = common->clamp_max;
    column.fours = fours;
    column.zero_point = common->output_zero_point;
    column.out = out + c;
    for (; count > 0; count--, column.out += d->across) {
        compute(&column);
        column.place = vaddq_n_u32(column.place, (uint32_t)d->apart);
    }
}

/* Output columns one by one, of four channels or more; where the number of channels is no multiple
 * of four, the last ones are computed with some that are there already. */
static NN_NOINLINE void compute_few(const nn_mve_depthwise *d, const tile_inputs *inputs,
                                    int32_t count, int8_t *out) {
    const int32_t channels = d->in->channels;
    for (int32_t c = 0; c < channels; c += CHANNELS) {
        const int32_t first = nn_min(c, channels - 4), some = nn_min(CHANNELS, channels - first);
        spread(d, inputs, first, some);
        compute_fours(d, first, some >> 2, 0, count, out);
        if ((some & 3) != 0) {
            compute_fours(d, first + some - 4, 1, some - 4, count, out);
        }
    }
}

/* Output columns in a mode that is rare. */
static NN_NOINLINE void compute_general(const nn_mve_depthwise *d, const tile_inputs *inputs,
                                        int32_t count, int8_t *out) {
    for (int32_t c = 0; c < d->in->channels; c += CHANNELS) {
        const int32_t some = nn_min(CHANNELS, d->in->channels - c);
        spread(d, inputs, c, some);
        for (int32_t i = 0; i < d->geometry->groups; i++) {
            const int8_t *const record = nn_mve_record(d, i * d->in->channels + c);
            nn_mve_depthwise_general(d, record, some, count, out + c * d->geometry->groups + i);
        }
    }
}

/* Output columns [x, x + count), a run from `out` on. */
static inline void compute_tile(const nn_mve_depthwise *d, tile_inputs *inputs, int32_t x,
                                int32_t count, int8_t *out) {
    const nn_conv_geometry *g = d->geometry;
    const int32_t left = x * g->stride_w - g->pad_left;
    const int32_t columns = (count - 1) * g->stride_w + d->columns;
    if (d->spread == NULL) {
        find_sources(d, left, columns, inputs);
    } else {
        inputs->of.words.first = left;
        inputs->of.words.count = columns;
    }
    if (d->head->mode == NN_MVE_GENERAL) {
        compute_general(d, inputs, count, out);
    } else if (count <= FEW && d->in->channels >= 4 && d->geometry->groups == 1) {
        compute_few(d, inputs, count, out);
    } else {
        compute_many(d, inputs, count, out);
    }
}

/* Every `dilation`-th output of row y, from column x on. */
static inline void compute_row(const nn_mve_depthwise *d, tile_inputs *inputs,
                               const nn_window *window, int32_t y, int32_t x) {
    const int32_t apart = d->geometry->dilation_w;
    for (int32_t count; x < window->x1; x += count * apart) {
        count = (nn_run(d->out, x, window->x1 - x) + apart - 1) / apart;
        count = nn_min(d->tile, count);
        compute_tile(d, inputs, x, count, nn_out_pixel(d->out, y, x));
    }
}

void nn_mve_depthwise_rows(const nn_mve_depthwise *d, const nn_window *window) {
    const nn_conv_geometry *g = d->geometry;
    tile_inputs inputs;
    inputs.rows = inputs.few;
    if (d->groups > NN_MVE_FEW_GROUPS) { /* behind the zero points */
        inputs.rows = (nn_mve_rows *)(void *)(d->zeros + 16);
    }
    for (int32_t i = 0; i < d->groups; i++) {
        inputs.rows[i].apart = d->pitch - WORD_PITCH;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        if (d->spread == NULL) {
            find_rows(d, y * g->stride_h - g->pad_top, &inputs);
        } else {
            inputs.of.words.y = y;
        }
        for (int32_t i = 0; i < d->geometry->dilation_w; i++) {
            compute_row(d, &inputs, window, y, window->x0 + i);
        }
    }
}
