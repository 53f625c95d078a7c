/* DEPTHWISE_CONV_2D in tiles: 12, six or three pixels side by side, of one channel at a time.
 *
 * A tile's sums and one row of taps are in registers, so each input of a row is loaded once for all
 * the taps that meet it. The kernel's width is the template's; a narrower kernel has weights of
 * zero behind its own. Inside the tensor a tile's columns are a step apart; elsewhere a table says
 * where each is, and padding has no place.
 */
#ifndef NN_RISCV_DEPTHWISE_H
#define NN_RISCV_DEPTHWISE_H

#include "nn_riscv_scalar.h"
#include "nn_tile_row.h"

#define NN_RISCV_LONG 12  /* pixels of a tile in the middle, stride 1 */
#define NN_RISCV_TILE 6   /* pixels of a tile anywhere */
#define NN_RISCV_NARROW 3 /* pixels of a small one */

/* The compiler would put additions off, and load ahead, until registers run out. */
#define NN_RISCV_NOW(value) __asm volatile("" : "+r"(value))

/* One row of output. */
typedef struct {
    nn_tile_row at;
    const nn_riscv_head *head;
    const nn_riscv_channel *channels;
    const int8_t *weights;
    int32_t out_step, channel_step; /* from pixel to pixel, from channel to channel */
} nn_riscv_row;

/* The sum of `count` weights. */
NN_OUTLINE int32_t nn_riscv_total(const int8_t *weights, int32_t count) {
    int32_t sum = 0;
    for (; count > 0; count--) {
        sum += *weights++;
    }
    return sum;
}

/* The outputs of sums that constants may not be folded for. */
NN_OUTLINE void nn_riscv_put_general(const nn_conv_constants *common,
                                     const nn_riscv_channel *channel, const int32_t *sums,
                                     int8_t *out, int32_t step, int32_t count) {
    for (int32_t p = 0; p < count; p++, out += step) {
        *out = nn_riscv_general(sums[p], channel, common);
    }
}

/* One output of all channels, of a tile of `pixels` (template), `count` of which are wanted, from
 * `column` of the column window on: where every column lies in the tensor, one after the other
 * (`regular`), or where the row's table says. */
static inline __attribute__((always_inline)) void
nn_riscv_tile(const nn_riscv_row *r, int32_t column, int8_t *out, int32_t count,
              const int32_t width, const int32_t pixels, const int32_t stride, const int regular) {
    const int32_t step = r->at.in->pixel_stride, out_step = r->out_step,
                  padding = r->head->common.input_zero_point;
    const int32_t low = r->head->common.clamp_min, high = r->head->common.clamp_max;
    const int32_t above = width * r->at.above, below = width * r->at.below, rows = r->at.rows;
    const int32_t row_step = r->at.row_step, ring = r->at.ring, *const offsets = r->at.offsets;
    const int odd = r->head->mode != NN_RISCV_PLAIN, general = r->head->mode == NN_RISCV_GENERAL;
    const int8_t *first = r->at.data + column * step, *ring_end = r->at.ring_end, *w = r->weights;
    const nn_riscv_channel *channel = r->channels, *last = channel + r->at.in->channels;
    for (; channel != last; channel++, first++, out += r->channel_step) {
        int32_t sums[NN_RISCV_LONG], bias = channel->bias;
        const int8_t *row = first;
        if (above + below != 0) {
            const int32_t outside =
                nn_riscv_total(w, above) + nn_riscv_total(w + above + width * rows, below);
            bias = nn_wrapping_add(bias, padding * outside);
            w += above;
        }
        for (int32_t p = 0; p < pixels; p++) {
            sums[p] = bias;
        }
        for (const int8_t *end = w + width * rows; w != end; w += width) {
            const int8_t *x = row;
            int32_t taps[9];
#pragma GCC unroll 12
            for (int32_t k = 0; k < width; k++) {
                taps[k] = w[k];
            }
#pragma GCC unroll 20
            for (int32_t i = 0; i < (pixels - 1) * stride + width; i++) {
                int32_t value = padding;
                if (regular) {
                    value = *x;
                    x += step;
                } else if (offsets[i] >= 0) {
                    value = x[offsets[i]];
                }
#pragma GCC unroll 12
                for (int32_t p = 0; p < pixels; p++) {
                    const int32_t k = i - p * stride;
                    if (k >= 0 && k < width) {
                        sums[p] = nn_wrapping_add(sums[p], value * taps[k]);
                        NN_RISCV_NOW(sums[p]);
                    }
                }
            }
            row += row_step;
            row = row >= ring_end ? row - ring : row;
        }
        w += below;
        if (general) {
            int32_t kept[NN_RISCV_LONG];
            for (int32_t p = 0; p < pixels; p++) {
                kept[p] = sums[p];
            }
            nn_riscv_put_general(&r->head->common, channel, kept, out, out_step, count);
            continue;
        }
        const nn_riscv_channel k = *channel;
        int8_t *pixel = out;
#pragma GCC unroll 12
        for (int32_t p = 0; p < pixels; p++, pixel += out_step) {
            if (!regular && p == count) {
                break;
            }
            *pixel = nn_riscv_output(sums[p], k.multiplier, k.exponent, k.offset, odd, low, high);
        }
    }
}

/* What computes all channels of a tile of `count` pixels. */
typedef void nn_riscv_compute(const nn_riscv_row *r, int32_t column, int8_t *out, int32_t count);

/* Has a tile computed for each output of a channel in turn: constants are in this order. `weights`:
 * bytes of those of one output of all channels. */
static inline void nn_riscv_each(nn_riscv_compute *compute, nn_riscv_row *r, int32_t weights,
                                 int32_t column, int8_t *out, int32_t count) {
    const nn_riscv_channel *const channels = r->channels;
    const int8_t *const of_first = r->weights;
    compute(r, column, out, count);
    for (int32_t i = 1; i < r->channel_step; i++) {
        r->channels += r->at.in->channels;
        r->weights += weights;
        compute(r, column, out + i, count);
    }
    r->channels = channels;
    r->weights = of_first;
}

typedef struct {
    nn_riscv_compute *regular, *whole, *narrow;
} nn_riscv_tiles;

/* Has all tiles of a window computed; `width`: of the template. */
static inline void nn_riscv_depthwise(const nn_riscv_tiles *tiles, int32_t width,
                                      const nn_conv_geometry *g, const void *constants,
                                      const nn_view *in, const nn_view *out,
                                      const nn_window *window) {
    const int32_t most = g->stride_w == 1 ? NN_RISCV_LONG : NN_RISCV_TILE; /* in the middle */
    const int32_t reach = (most - 1) * g->stride_w + width;
    const int32_t weights = in->channels * g->kernel_h * width;
    nn_riscv_row r;
    nn_tile_open(&r.at, g, in);
    r.head = (const nn_riscv_head *)constants;
    r.channels = nn_riscv_channels(constants);
    r.weights = (const int8_t *)(r.channels + out->channels);
    r.out_step = out->pixel_stride;
    r.channel_step = g->groups;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_tile_seek(&r.at, y);
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            const int32_t left = x * g->stride_w - g->pad_left;
            count = nn_run(out, x, nn_min(window->x1 - x, most));
            if (count == most && nn_tile_regular(in, left, reach)) {
                nn_riscv_each(tiles->regular, &r, weights, nn_column(in, left),
                              nn_out_pixel(out, y, x), count);
                continue;
            }
            count = nn_min(count, NN_RISCV_TILE);
            nn_tile_columns(&r.at, left, count);
            nn_riscv_each(count > NN_RISCV_NARROW ? tiles->whole : tiles->narrow, &r, weights, 0,
                          nn_out_pixel(out, y, x), count);
        }
    }
}

#define NN_RISCV_COMPUTE(name, width, pixels, stride, regular)                                     \
    NN_OUTLINE void name(const nn_riscv_row *r, int32_t column, int8_t *out, int32_t count) {      \
        nn_riscv_tile(r, column, out, count, width, pixels, stride, regular);                      \
    }

/* The kernel `symbol` for kernels of at most `width` columns and strides 1 and 2. */
#define NN_RISCV_DEPTHWISE(symbol, width)                                                          \
    NN_RISCV_COMPUTE(regular1, width, NN_RISCV_LONG, 1, 1)                                         \
    NN_RISCV_COMPUTE(whole1, width, NN_RISCV_TILE, 1, 0)                                           \
    NN_RISCV_COMPUTE(narrow1, width, NN_RISCV_NARROW, 1, 0)                                        \
    NN_RISCV_COMPUTE(regular2, width, NN_RISCV_TILE, 2, 1)                                         \
    NN_RISCV_COMPUTE(whole2, width, NN_RISCV_TILE, 2, 0)                                           \
    NN_RISCV_COMPUTE(narrow2, width, NN_RISCV_NARROW, 2, 0)                                        \
    void symbol(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,        \
                const nn_view *out, const nn_window *window, void *scratch) {                      \
        static const nn_riscv_tiles tiles[2] = {{regular1, whole1, narrow1},                       \
                                                {regular2, whole2, narrow2}};                      \
        (void)scratch;                                                                             \
        nn_riscv_depthwise(&tiles[geometry->stride_w - 1], width, geometry, constants, in, out,    \
                           window);                                                                \
    }

#endif
