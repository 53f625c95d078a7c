/* DEPTHWISE_CONV_2D on int16, Helium: eight channels at a time over the taps that meet the input.
 * With a depth multiplier, their inputs are gathered. Constants as nn_depthwise_conv2d_s16's. 511
 * taps at most: sums fit int32. */
#include "nn_mve_wide.h"
#include "nn_wide_patch.h"

/* The taps of a pixel that meet the input. Where its columns lie one after the other (`joined`) a
 * row of them is one walk. */
typedef struct {
    const nn_wide_patch *patch;
    const int8_t *first, *end; /* the pixel of the first tap; the end of the ring of rows */
    int32_t ring, row_step;    /* bytes of the ring; from row to row */
    int32_t rows, columns, step;
    int joined;
    int32_t multiplier, outputs;
    const int8_t *weights; /* of the first tap */
} taps;

static inline taps find_taps(const nn_wide_patch *p, const int8_t *weights, int32_t multiplier) {
    const nn_view *const in = p->in;
    const int32_t column = nn_column(in, p->x);
    taps t;
    t.patch = p;
    t.rows = p->rows.end - p->rows.first;
    t.columns = p->columns.end - p->columns.first;
    t.step = p->dilation_w * in->pixel_stride;
    t.joined = column + (t.columns - 1) * p->dilation_w < in->ring_cols;
    t.ring = in->ring_rows * in->row_stride;
    t.row_step = p->dilation_h % in->ring_rows * in->row_stride;
    t.end = in->data + t.ring;
    t.first = nn_row(in, p->y) + (t.joined ? column * in->pixel_stride : 0);
    t.multiplier = multiplier;
    t.outputs = in->channels * multiplier;
    t.weights = weights + (p->rows.first * p->kernel_w + p->columns.first) * t.outputs;
    return t;
}

/* The even channels' sums, the odd ones'. */
typedef struct {
    int32x4_t even, odd;
} wide_sums;

/* `inputs`: their offsets, where they are gathered. */
static inline wide_sums add_tap(wide_sums sums, const int8_t *place, const int8_t *w,
                                mve_pred16_t some, int gathered, uint16x8_t inputs) {
    const int16_t *const from = (const int16_t *)(const void *)place;
    const int16x8_t values =
        gathered ? vldrhq_gather_offset_z_s16(from, inputs, some) : vldrhq_z_s16(from, some);
    const int16x8_t factors = vldrbq_z_s16(w, some);
    sums.even = vaddq_s32(sums.even, vmullbq_int_s16(values, factors));
    sums.odd = vaddq_s32(sums.odd, vmulltq_int_s16(values, factors));
    return sums;
}

/* The offsets of the inputs of eight channels from c on, from the first one's input. (c % m +
 * 7) * m < 2^16 for multipliers m of up to 128: the quotients are exact. */
static inline uint16x8_t offsets_of(const taps *t, int32_t c) {
    const uint16x8_t places = vidupq_n_u16((uint32_t)(c % t->multiplier), 1);
    const uint32_t inverse = 65535U / (uint32_t)t->multiplier + 1;
    return vshlq_n_u16(vmulhq_u16(places, vdupq_n_u16((uint16_t)inverse)), 1);
}

/* The sums of `count` (at most 8) channels from c on; `gathered`: of a multiplier above 1. */
static inline __attribute__((always_inline)) void sum_taps(int32_t result[8], const taps *t,
                                                           int32_t c, int32_t count, int gathered) {
    const int32_t channels = t->outputs, kernel_row = t->patch->kernel_w * channels;
    const int32_t input = 2 * (gathered ? c / t->multiplier : c);
    const uint16x8_t inputs = gathered ? offsets_of(t, c) : vdupq_n_u16(0);
    const mve_pred16_t some = vctp16q((uint32_t)count);
    wide_sums sums = {vdupq_n_s32(0), vdupq_n_s32(0)};
    const int8_t *row = t->first, *w_row = t->weights + c;
    for (int32_t rows = t->columns > 0 ? t->rows : 0; rows > 0; rows--, w_row += kernel_row) {
        const int8_t *w = w_row, *place = row + input;
        for (int32_t i = 0; i < t->columns; i++, w += channels, place += t->step) {
            if (!t->joined) {
                const int32_t x = t->patch->x + i * t->patch->dilation_w;
                place = row + input + nn_column(t->patch->in, x) * t->patch->in->pixel_stride;
            }
            sums = add_tap(sums, place, w, some, gathered, inputs);
        }
        row += t->row_step;
        row -= row >= t->end ? t->ring : 0;
    }
    const int32x4x2_t both = {{sums.even, sums.odd}};
    vst2q_s32(result, both);
}

static NN_NOINLINE void put(int16_t *out, const int32_t *sums, const nn_wide_channel *channels,
                            const nn_wide_constants *common, int32_t count) {
    if (common->sum_bits != 32) {
        for (int32_t i = 0; i < count; i++) {
            out[i] = nn_wide_output(sums[i], channels + i, common);
        }
        return;
    }
    for (; count > 0; count -= 4, out += 4, sums += 4, channels += 4) {
        nn_mve_wide_put(out, vldrwq_s32(sums), channels, common, nn_min(count, 4));
    }
}

void nn_depthwise_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const nn_wide_channel *channels = (const nn_wide_channel *)block.channels;
    nn_wide_patch p = nn_wide_patches(g, in);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&p, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            int16_t *result = nn_wide_out(out, y, x);
            nn_wide_at_column(&p, g, x);
            const taps t = find_taps(&p, block.weights, g->groups);
            for (int32_t c = 0; c < out->channels; c += 8) {
                const int32_t count = nn_min(8, out->channels - c);
                int32_t sums[8];
                if (t.multiplier == 1) {
                    sum_taps(sums, &t, c, count, 0);
                } else {
                    sum_taps(sums, &t, c, count, 1);
                }
                put(result + c, sums, channels + c, &block.common, count);
            }
        }
    }
}
