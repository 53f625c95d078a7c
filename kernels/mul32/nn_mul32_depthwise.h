/* DEPTHWISE_CONV_2D in tiles: six or three pixels side by side, of one channel at a time.
 *
 * A tile's sums and one row of taps are in registers, so each input of a row is loaded once for all
 * the taps that meet it. The kernel's width is the template's; a narrower kernel has weights of
 * zero behind its own. Inside the tensor a tile's columns are a step apart; elsewhere a table says
 * where each is.
 */
#ifndef NN_MUL32_DEPTHWISE_H
#define NN_MUL32_DEPTHWISE_H

#include "nn_mul32_scale.h"
#include "nn_tile_row.h"

#define NN_MUL32_TILE 6   /* pixels of a tile */
#define NN_MUL32_NARROW 3 /* of a small one */

/* One row of output. */
typedef struct {
    nn_tile_row at;
    const nn_mul32_head *head;
    const nn_mul32_channel *channels;
    const uint32_t *weights;
    int32_t out_step;
} nn_mul32_row;

/* Byte `at` of a word, signed. */
static inline int32_t nn_mul32_byte(uint32_t word, int32_t at) {
    return (int32_t)(word << (24 - 8 * at)) >> 24;
}

/* The sum of the bytes of `count` words. */
NN_OUTLINE int32_t nn_mul32_total(const uint32_t *words, int32_t count) {
    int32_t sum = 0;
    for (; count > 0; count--, words++) {
        for (int32_t i = 0; i < 4; i++) {
            sum += nn_mul32_byte(*words, i);
        }
    }
    return sum;
}

/* The outputs of a tile's sums. */
static inline __attribute__((always_inline)) void
nn_mul32_put(const nn_mul32_head *head, const nn_mul32_channel *channel, const int32_t *sums,
             int8_t *out, int32_t step, int32_t count, int odd, int wide) {
    const nn_mul32_factor f =
        nn_mul32_split(channel->multiplier, channel->shift, head->common.output_zero_point);
    const int32_t low = head->common.clamp_min, high = head->common.clamp_max;
    for (const int32_t *end = sums + count; sums != end; out += step) {
        *out = (int8_t)nn_clamp(nn_mul32_scale(*sums++, &f, odd, wide), low, high);
    }
}

NN_OUTLINE void nn_mul32_put_plain(const nn_mul32_head *head, const nn_mul32_channel *channel,
                                   const int32_t *sums, int8_t *out, int32_t step, int32_t count) {
    nn_mul32_put(head, channel, sums, out, step, count, 0, 0);
}

NN_OUTLINE void nn_mul32_put_odd(const nn_mul32_head *head, const nn_mul32_channel *channel,
                                 const int32_t *sums, int8_t *out, int32_t step, int32_t count) {
    nn_mul32_put(head, channel, sums, out, step, count, 1, 1);
}

NN_MUL32_ONCE void nn_mul32_put_general(const nn_mul32_head *head, const nn_mul32_channel *channel,
                                        const int32_t *sums, int8_t *out, int32_t step,
                                        int32_t count) {
    nn_channel plain = *channel;
    plain.bias = 0; /* it is in the sums */
    for (int32_t p = 0; p < count; p++, out += step) {
        *out = nn_conv_output(sums[p], &plain, &head->common);
    }
}

/* Calls by name, not by address: the stack that they take can be told from the code. */
static inline __attribute__((always_inline)) void nn_mul32_put_any(const nn_mul32_head *head,
                                                                   const nn_mul32_channel *channel,
                                                                   const int32_t *sums, int8_t *out,
                                                                   int32_t step, int32_t count) {
    if (head->mode == NN_MUL32_GENERAL) {
        nn_mul32_put_general(head, channel, sums, out, step, count);
    } else if (head->mode == NN_MUL32_PLAIN && !head->wide) {
        nn_mul32_put_plain(head, channel, sums, out, step, count);
    } else {
        nn_mul32_put_odd(head, channel, sums, out, step, count);
    }
}

/* All channels of a tile of `pixels` (template), `count` of which are wanted, from `column` of the
 * column window on: where every column lies in the tensor, one after the other (`regular`), or
 * where the row's table says. */
static inline __attribute__((always_inline)) void
nn_mul32_compute_tile(const nn_mul32_row *r, int32_t column, int8_t *out, int32_t count,
                      const int32_t width, const int32_t pixels, const int32_t stride,
                      const int regular) {
    const int32_t step = r->at.in->pixel_stride, out_step = r->out_step, words = (width + 3) / 4;
    const int32_t padding = r->head->common.input_zero_point + 128;
    const int32_t above = words * r->at.above, below = words * r->at.below, rows = r->at.rows;
    const int32_t row_step = r->at.row_step, ring = r->at.ring, *const offsets = r->at.offsets;
    const int8_t *first = r->at.data + column * step, *ring_end = r->at.ring_end;
    const uint32_t *w = r->weights;
    const nn_mul32_channel *channel = r->channels, *last = channel + r->at.in->channels;
    for (; channel != last; channel++, first++, out++) {
        int32_t sums[NN_MUL32_TILE], kept[NN_MUL32_TILE], bias = channel->bias;
        const int8_t *row = first;
        if (above + below != 0) {
            const int32_t outside =
                nn_mul32_total(w, above) + nn_mul32_total(w + above + words * rows, below);
            bias = nn_wrapping_add(bias, (int32_t)((uint32_t)padding * (uint32_t)outside));
            w += above;
        }
#pragma GCC unroll 6
        for (int32_t p = 0; p < pixels; p++) {
            sums[p] = bias;
        }
        for (const uint32_t *end = w + words * rows; w != end; w += words) {
            const int8_t *x = row;
            int32_t taps[8];
#pragma GCC unroll 8
            for (int32_t k = 0; k < width; k++) {
                taps[k] = nn_mul32_byte(w[k / 4], k % 4);
                NN_MUL32_NOW(taps[k]);
            }
#pragma GCC unroll 20
            for (int32_t i = 0; i < (pixels - 1) * stride + width; i++) {
                int32_t value = padding;
                if (regular) {
                    value = nn_mul32_natural(x);
                    x += step;
                } else if (offsets[i] >= 0) {
                    value = nn_mul32_natural(x + offsets[i]);
                }
#pragma GCC unroll 8
                for (int32_t p = 0; p < pixels; p++) {
                    const int32_t k = i - p * stride;
                    if (k >= 0 && k < width) {
                        sums[p] = nn_wrapping_add(sums[p], value * taps[k]);
                        NN_MUL32_NOW(sums[p]);
                    }
                }
            }
            row += row_step;
            row = row >= ring_end ? row - ring : row;
        }
        w += below;
#pragma GCC unroll 6
        for (int32_t p = 0; p < pixels; p++) {
            kept[p] = sums[p];
        }
        nn_mul32_put_any(r->head, channel, kept, out, out_step, count);
    }
}

/* What computes all channels of a tile of `count` pixels. */
typedef void nn_mul32_tile(const nn_mul32_row *r, int32_t column, int8_t *out, int32_t count);

typedef struct {
    nn_mul32_tile *regular, *regular_narrow, *whole, *narrow;
} nn_mul32_tiles;

/* Has the tiles of a row computed. */
static inline void nn_mul32_row_tiles(const nn_mul32_tiles *tiles, int32_t width, nn_mul32_row *r,
                                      const nn_view *out, const nn_window *window, int32_t y) {
    const nn_conv_geometry *g = r->at.geometry;
    const nn_view *in = r->at.in;
    for (int32_t x = window->x0, count; x < window->x1; x += count) {
        const int32_t left = x * g->stride_w - g->pad_left;
        int8_t *to = nn_out_pixel(out, y, x);
        count = nn_run(out, x, nn_min(window->x1 - x, NN_MUL32_TILE));
        if (count == NN_MUL32_TILE &&
            nn_tile_regular(in, left, (NN_MUL32_TILE - 1) * g->stride_w + width)) {
            tiles->regular(r, nn_column(in, left), to, count);
        } else if (count >= NN_MUL32_NARROW &&
                   nn_tile_regular(in, left, (NN_MUL32_NARROW - 1) * g->stride_w + width)) {
            count = NN_MUL32_NARROW;
            tiles->regular_narrow(r, nn_column(in, left), to, count);
        } else {
            if (left < 0 && window->x1 - x >= NN_MUL32_NARROW + NN_MUL32_TILE) {
                count = nn_min(count, NN_MUL32_NARROW); /* what follows may be regular */
            }
            nn_tile_columns(&r->at, left, count);
            (count > NN_MUL32_NARROW ? tiles->whole : tiles->narrow)(r, 0, to, count);
        }
    }
}

/* Has all tiles of a window computed; `width`: of the template. */
static inline void nn_mul32_depthwise(const nn_mul32_tiles *tiles, int32_t width,
                                      const nn_conv_geometry *g, const void *constants,
                                      const nn_view *in, const nn_view *out,
                                      const nn_window *window) {
    nn_mul32_row r;
    nn_tile_open(&r.at, g, in);
    r.head = (const nn_mul32_head *)constants;
    r.channels = nn_mul32_channels(constants);
    r.weights = nn_mul32_weights(constants, in->channels);
    r.out_step = out->pixel_stride;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_tile_seek(&r.at, y);
        nn_mul32_row_tiles(tiles, width, &r, out, window, y);
    }
}

#define NN_MUL32_COMPUTE(name, width, pixels, stride, regular)                                     \
    NN_OUTLINE void name(const nn_mul32_row *r, int32_t column, int8_t *out, int32_t count) {      \
        nn_mul32_compute_tile(r, column, out, count, width, pixels, stride, regular);              \
    }

/* The kernel `symbol` for kernels of at most `width` columns and strides 1 and 2. */
#define NN_MUL32_DEPTHWISE(symbol, width)                                                          \
    NN_MUL32_COMPUTE(regular1, width, NN_MUL32_TILE, 1, 1)                                         \
    NN_MUL32_COMPUTE(short1, width, NN_MUL32_NARROW, 1, 1)                                         \
    NN_MUL32_COMPUTE(whole1, width, NN_MUL32_TILE, 1, 0)                                           \
    NN_MUL32_COMPUTE(narrow1, width, NN_MUL32_NARROW, 1, 0)                                        \
    NN_MUL32_COMPUTE(regular2, width, NN_MUL32_TILE, 2, 1)                                         \
    NN_MUL32_COMPUTE(short2, width, NN_MUL32_NARROW, 2, 1)                                         \
    NN_MUL32_COMPUTE(whole2, width, NN_MUL32_TILE, 2, 0)                                           \
    NN_MUL32_COMPUTE(narrow2, width, NN_MUL32_NARROW, 2, 0)                                        \
    void symbol(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,        \
                const nn_view *out, const nn_window *window, void *scratch) {                      \
        static const nn_mul32_tiles tiles[2] = {{regular1, short1, whole1, narrow1},               \
                                                {regular2, short2, whole2, narrow2}};              \
        (void)scratch;                                                                             \
        nn_mul32_depthwise(&tiles[geometry->stride_w - 1], width, geometry, constants, in, out,    \
                           window);                                                                \
    }

#endif
