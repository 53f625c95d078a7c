/* Convolutions of which an output channel meets few input channels: up to four pixels of a row at a
 * time, output channels side by side in vectors.
 *
 * In a depthwise convolution the input channels lie side by side as well, and are loaded as they
 * lie. Otherwise (`gather`) each group of `outputs` output channels has `inputs` input channels,
 * and a vector holds whole groups: the input channels of its groups are loaded, and each output
 * channel takes the first input of its group, then the second, and so on.
 *
 * With stride s and dilation d, tap k of output column x meets input column x * s + k * d - pad. A
 * tile's pixels are d / gcd(s, d) output columns apart, so that tap k + s / gcd(s, d) of a pixel
 * meets the column that tap k of the next pixel meets. The taps of a row fall into s / gcd(s, d)
 * chains of such taps. Along a chain the columns slide through registers: each step loads one
 * column and one tap's weights and multiplies them for all pixels, which is (6 + pixels)
 * instructions for as many taps as there are pixels, one more where channels are gathered.
 *
 * Inputs of int16 (`wide`) are loaded as they are; their sums become outputs as nn_rvv_wide.h says.
 */
#ifndef NN_RVV_TILE_H
#define NN_RVV_TILE_H

#include "nn_rvv_wide.h"

#define NN_RVV_PIXELS 4

/* What the tiles of a row of output have in common, and where the present one begins. */
typedef struct {
    nn_rvv_block block;
    int32_t channels, kernel_h, kernel_w; /* of the output */
    int32_t inputs, outputs;              /* channels of a group, 1 and 1 if depthwise */
    int32_t most;                         /* output channels of a vector */
    nn_taps rows;                         /* that meet the input, */
    const int8_t *data;                   /* and the column window of the first of them */
    int32_t row_step, row_ring;
    const int8_t *row_end;
    int32_t chains, dilation;       /* of a row of taps; columns from tap to tap */
    int32_t column_step;            /* columns from tap to tap of a chain */
    int32_t pixel_step;             /* bytes from column to column */
    int32_t width, column_ring, x0; /* of the input */
    int32_t left;                   /* the column of the first pixel's first tap, */
    int32_t place;    /* INSIDE: and where it lies in a row; EDGE: where column 0 does or would */
    int32_t out_step; /* bytes from pixel to pixel of the tile */
} nn_rvv_tile;

/* What is computed: depthwise, groups whose channels are gathered, depthwise of int16. */
enum { NN_RVV_DEPTHWISE, NN_RVV_GATHER, NN_RVV_WIDE };

/* How a tile's columns lie: all inside the tensor and one behind the other; those that are inside
 * lie one behind the other; or the ring of columns begins anew between them. */
enum { NN_RVV_INSIDE, NN_RVV_EDGE, NN_RVV_RING };

/* The column that is loaded next. */
typedef struct {
    const int8_t *at;          /* its address; EDGE: column 0's, which may lie before the row */
    int32_t place, step;       /* bytes from where a row begins; from column to column */
    int32_t offset, limit;     /* EDGE: bytes from column 0, and those of all columns */
    int32_t x, columns, width; /* RING: the column, and the step in columns */
    const int8_t *end;
    int32_t ring;
    int16_t padding;
    size_t count; /* of input channels */
} nn_rvv_cursor;

/* The first column of a chain of taps, whose row's `at` the caller adds. */
static inline __attribute__((always_inline)) nn_rvv_cursor nn_rvv_first(const nn_rvv_tile *t,
                                                                        int32_t tap,
                                                                        const int kind) {
    nn_rvv_cursor u = {0};
    const int32_t column = tap * t->dilation;
    u.step = t->column_step * t->pixel_step;
    u.padding = (int16_t)t->block.head->common.input_zero_point;
    u.place = t->place;
    if (kind == NN_RVV_INSIDE) {
        u.place += column * t->pixel_step;
    } else if (kind == NN_RVV_EDGE) {
        u.offset = (t->left + column) * t->pixel_step;
        u.limit = t->width * t->pixel_step;
    } else {
        u.x = t->left + column;
        u.columns = t->column_step;
        u.width = t->width;
        u.ring = t->column_ring * t->pixel_step;
        const int32_t first = u.x < 0 ? (u.x + 1) % u.columns + u.columns - 1 : u.x;
        u.place = (first - t->x0) % t->column_ring * t->pixel_step;
    }
    return u;
}

/* `vl` channels of a column: as they lie, or those that `which` says of u->count. */
static inline __attribute__((always_inline)) vint16m2_t nn_rvv_channels(const nn_rvv_cursor *u,
                                                                        const int8_t *at,
                                                                        vuint16m2_t which,
                                                                        const int form, size_t vl) {
    if (form == NN_RVV_WIDE) {
        return __riscv_vle16_v_i16m2((const int16_t *)(const void *)at, vl);
    }
    return form == NN_RVV_GATHER ? __riscv_vrgather(nn_rvv_load(at, u->count), which, vl)
                                 : nn_rvv_load(at, vl);
}

static inline __attribute__((always_inline)) vint16m2_t nn_rvv_next(nn_rvv_cursor *u,
                                                                    vuint16m2_t which,
                                                                    const int kind, const int form,
                                                                    size_t vl) {
    if (kind == NN_RVV_EDGE) {
        const int32_t offset = u->offset;
        u->offset += u->step;
        return (uint32_t)offset < (uint32_t)u->limit
                   ? nn_rvv_channels(u, u->at + offset, which, form, vl)
                   : __riscv_vmv_v_x_i16m2(u->padding, vl);
    }
    if (kind == NN_RVV_RING) {
        const int32_t x = u->x;
        u->x += u->columns;
        if ((uint32_t)x >= (uint32_t)u->width) {
            return __riscv_vmv_v_x_i16m2(u->padding, vl);
        }
    }
    const vint16m2_t values = nn_rvv_channels(u, u->at, which, form, vl);
    u->at += u->step;
    while (kind == NN_RVV_RING && u->at >= u->end) {
        u->at -= u->ring;
    }
    return values;
}

/* Adds the products of `taps` whose inputs are all padding. */
static inline __attribute__((always_inline)) vint32m4_t nn_rvv_add_padding(
    const nn_rvv_tile *t, vint32m4_t sums, const int8_t *weights, int32_t rows, size_t vl) {
    const int16_t padding = (int16_t)t->block.head->common.input_zero_point;
    for (int32_t taps = rows * t->kernel_w * t->inputs; taps > 0; taps--, weights += t->channels) {
        sums = __riscv_vwmacc(sums, padding, nn_rvv_load(weights, vl), vl);
    }
    return sums;
}

/* One tap of a chain: `last` is loaded, and is the last pixel's column. */
#define NN_RVV_TAP(first, second, third, last)                                                     \
    do {                                                                                           \
        last = nn_rvv_next(&u, which, kind, form, vl);                                             \
        const vint16m2_t weight = nn_rvv_load(w, vl);                                              \
        w += weight_step;                                                                          \
        s0 = __riscv_vwmacc(s0, first, weight, vl);                                                \
        if (pixels > 1) {                                                                          \
            s1 = __riscv_vwmacc(s1, second, weight, vl);                                           \
        }                                                                                          \
        if (pixels > 2) {                                                                          \
            s2 = __riscv_vwmacc(s2, third, weight, vl);                                            \
        }                                                                                          \
        if (pixels > 3) {                                                                          \
            s3 = __riscv_vwmacc(s3, last, weight, vl);                                             \
        }                                                                                          \
    } while (0)

/* The chain of taps from `w` on, below `end`; the columns come from `u`. */
#define NN_RVV_NEXT_TAP(first, second, third, last)                                                \
    if (w >= end) {                                                                                \
        break;                                                                                     \
    }                                                                                              \
    NN_RVV_TAP(first, second, third, last)

/* Output channels [c, c + vl) of a tile. `pixels`, `kind`, `form` are known when it is compiled. */
static inline __attribute__((always_inline)) void nn_rvv_compute(const nn_rvv_tile *t, int8_t *out,
                                                                 int32_t c, const int32_t pixels,
                                                                 const int kind, const int form,
                                                                 size_t vl) {
    const nn_rvv_block *const b = &t->block;
    const int gather = form == NN_RVV_GATHER, wide = form == NN_RVV_WIDE;
    const int32_t channels = t->channels, inputs = gather ? t->inputs : 1;
    const int32_t tap_weights = inputs * channels, row_weights = t->kernel_w * tap_weights;
    const int32_t weight_step = t->chains * tap_weights;
    const int8_t *weights = b->weights + c, *data = t->data + (wide ? 2 * c : c);
    size_t count = vl;
    vuint16m2_t which = __riscv_vundefined_u16m2();
    if (gather) {
        data = t->data + c / t->outputs * inputs;
        count = vl / (size_t)t->outputs * (size_t)inputs;
        which = __riscv_vdivu(__riscv_vid_v_u16m2(vl), (uint16_t)t->outputs, vl);
        which = __riscv_vmul(which, (uint16_t)inputs, vl);
    }
    vint32m4_t s0 = wide ? nn_rvv_wide_begin(b, c, vl) : __riscv_vle32_v_i32m4(b->biases + c, vl);
    if (!wide) { /* padding of int16 is 0 */
        s0 = nn_rvv_add_padding(t, s0, weights, t->rows.first, vl);
        s0 = nn_rvv_add_padding(t, s0, weights + t->rows.end * row_weights,
                                t->kernel_h - t->rows.end, vl);
    }
    weights += t->rows.first * row_weights;
    vint32m4_t s1 = s0, s2 = s0, s3 = s0;
    for (int32_t chain = 0; chain < t->chains && chain < t->kernel_w; chain++) {
        nn_rvv_cursor first = nn_rvv_first(t, chain, kind);
        int32_t taps_weights = row_weights - chain * tap_weights;
        first.count = count;
        for (int32_t i = inputs; i > 0; i--, taps_weights -= channels) {
            const int8_t *end = weights, *row = data;
            for (int32_t k = t->rows.end - t->rows.first; k > 0; k--) {
                nn_rvv_cursor u = first;
                vint16m2_t x0, x1, x2, x3;
                end += row_weights;
                const int8_t *w = end - taps_weights;
                u.at = row + first.place;
                u.end = row + first.ring;
                x0 = x1 = x2 = x3 = __riscv_vundefined_i16m2();
                if (pixels > 1) {
                    x0 = nn_rvv_next(&u, which, kind, form, vl);
                }
                if (pixels > 2) {
                    x1 = nn_rvv_next(&u, which, kind, form, vl);
                }
                if (pixels > 3) {
                    x2 = nn_rvv_next(&u, which, kind, form, vl);
                }
                do {
                    if (pixels == 1) {
                        NN_RVV_TAP(x0, x0, x0, x0);
                    } else if (pixels == 2) {
                        NN_RVV_TAP(x0, x1, x1, x1);
                        NN_RVV_NEXT_TAP(x1, x0, x0, x0);
                    } else if (pixels == 3) {
                        NN_RVV_TAP(x0, x1, x2, x2);
                        NN_RVV_NEXT_TAP(x1, x2, x0, x0);
                        NN_RVV_NEXT_TAP(x2, x0, x1, x1);
                    } else {
                        NN_RVV_TAP(x0, x1, x2, x3);
                        NN_RVV_NEXT_TAP(x1, x2, x3, x0);
                        NN_RVV_NEXT_TAP(x2, x3, x0, x1);
                        NN_RVV_NEXT_TAP(x3, x0, x1, x2);
                    }
                    /* Otherwise the compiler makes a pointer for each tap of the loop. */
                    if (kind == NN_RVV_EDGE) {
                        __asm("" : "+r"(w), "+r"(u.offset));
                    } else {
                        __asm("" : "+r"(w), "+r"(u.at));
                    }
                } while (w < end);
                row += t->row_step;
                row = row >= t->row_end ? row - t->row_ring : row;
            }
            if (gather) {
                which = __riscv_vadd(which, 1, vl);
            }
        }
        if (gather) {
            which = __riscv_vsub(which, (uint16_t)inputs, vl);
        }
    }
    if (!wide) {
        nn_rvv_put_pixels(b, c, out + c, t->out_step, s0, s1, s2, s3, pixels, vl);
        return;
    }
    nn_rvv_wide_put_pixels(b, c, out, t->out_step, s0, s1, s2, s3, pixels, vl);
}

#endif
