/* CONV_2D without groups, Helium: dot products of 16 bytes, two pixels by three channels at a time.
 *
 * constants: nn_mve_head; for each four channels their multipliers, then their shifts (int32[8]);
 * then, with n = ceil(kernel_h * kernel_w * cin / 16) and weights in O H W I order padded to 16 n
 * bytes a channel,
 *   tiles of three channels: int32[6], each bias twice, then n times 16 weights of each channel;
 *     the last tile's third channel may be missing: zeros;
 *   a single channel left: int32[2], the bias twice, then 16 n weights.
 * Each part begins where the one before it ends. The bias is that of nn_conv_constants.
 *
 * A pixel's inputs are read where they are if they lie one after the other (kernel 1 x 1), else
 * they are gathered into scratch first, with the zero point where there is padding.
 */
#include "nn_mve_pairs.h"

#define MAX_ROWS 16 /* of a kernel whose rows' places are remembered */
/* Bytes from a pixel's outputs to its neighbour's that offsets of 16 bits reach, with three more
 * channels; beyond, pixels are computed one by one. */
#define MAX_APART (65535 - 3)

/* What the pixels of one call share. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    int32_t zero_point;
    int32_t segment; /* bytes of a row of taps */
    int32_t size;    /* of a patch */
    int joined;      /* the inputs of a row of taps lie one after the other */
    int32_t pixel;   /* bytes from pixel to pixel of the input */
    int32_t next;    /* from a pixel's taps to those of its neighbour */
    int32_t columns; /* under two neighbours */
} convolution;

/* The input rows under a row of outputs. */
typedef struct {
    const int8_t *row[MAX_ROWS]; /* NULL: padding */
    int32_t top;                 /* the first one's number */
    int known;                   /* row[] is valid */
    int inside;                  /* it is, and all are */
} tap_rows;

/* Gathers a patch tap by tap: any dilation, any ring. */
static NN_NOINLINE void gather_any(const convolution *c, int32_t top, int32_t left, int8_t *patch) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    for (int32_t ky = 0; ky < g->kernel_h; ky++, patch += c->segment) {
        const int32_t y = top + ky * g->dilation_h;
        if (y < 0 || y >= in->height) {
            nn_mve_fill(patch, c->zero_point, c->segment);
            continue;
        }
        const int8_t *row = nn_row(in, y);
        int8_t *tap = patch;
        for (int32_t kx = 0; kx < g->kernel_w; kx++, tap += in->channels) {
            const int32_t x = left + kx * g->dilation_w;
            if (x < 0 || x >= in->width) {
                nn_mve_fill(tap, c->zero_point, in->channels);
            } else {
                nn_mve_copy(tap, row + nn_column(in, x) * in->pixel_stride, in->channels);
            }
        }
    }
}

/* Gathers the patch of one pixel, where there may be padding. */
static NN_NOINLINE void gather(const convolution *c, const tap_rows *rows, int32_t left,
                               int8_t *patch) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    const nn_taps taps = nn_valid_taps(left, in->width, g->kernel_w, 1);
    const int32_t channels = in->channels, count = taps.end - taps.first;
    const int32_t column = count > 0 ? nn_column(in, left + taps.first) : 0;
    const int32_t before = taps.first * channels, bytes = count * channels;
    if (!rows->known || !c->joined || column + count > in->ring_cols) {
        gather_any(c, rows->top, left, patch);
        return;
    }
    for (int32_t ky = 0; ky < g->kernel_h; ky++, patch += c->segment) {
        if (rows->row[ky] == NULL) {
            nn_mve_fill(patch, c->zero_point, c->segment);
        } else {
            nn_mve_fill(patch, c->zero_point, before);
            nn_mve_copy(patch + before, rows->row[ky] + column * in->pixel_stride, bytes);
            nn_mve_fill(patch + before + bytes, c->zero_point, c->segment - before - bytes);
        }
    }
}

/* Gathers the patches of two neighbours, the first with its taps from column `left` on. */
static inline void gather_two(const convolution *c, const tap_rows *rows, int32_t left,
                              int8_t *first, int8_t *second) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    const int32_t width = c->columns, segment = c->segment;
    const int32_t column = left >= 0 ? nn_column(in, left) : in->ring_cols;
    if (!rows->inside || left + width > in->width || column + width > in->ring_cols) {
        gather(c, rows, left, first);
        gather(c, rows, left + g->stride_w, second);
        return;
    }
    const int32_t offset = column * c->pixel, next = c->next;
    for (int32_t ky = 0; ky < g->kernel_h; ky++, first += segment, second += segment) {
        const int8_t *x0 = rows->row[ky] + offset, *x1 = x0 + next;
        int8_t *to0 = first, *to1 = second;
        __asm volatile("dlstp.8 lr, %[bytes]\n"
                       "1:\n"
                       "vldrb.u8 q0, [%[x0]], #16\n"
                       "vstrb.8 q0, [%[to0]], #16\n"
                       "vldrb.u8 q1, [%[x1]], #16\n"
                       "vstrb.8 q1, [%[to1]], #16\n"
                       "letp lr, 1b\n"
                       : [x0] "+r"(x0), [x1] "+r"(x1), [to0] "+r"(to0), [to1] "+r"(to1)
                       : [bytes] "r"(segment)
                       : "q0", "q1", "lr", "memory");
    }
}

/* The dot products for so many bytes. */
static inline void (*dots_for(int32_t bytes))(void) {
    if (bytes <= 32) {
        return bytes <= 16 ? nn_mve_dots_1 : nn_mve_dots_2;
    }
    if (bytes <= 48) {
        return nn_mve_dots_3;
    }
    return bytes <= 128 ? nn_mve_dots_8 : nn_mve_dots_any;
}

/* 0, apart, 1, apart + 1, ... */
static inline uint16x8_t offsets_for(int32_t apart) {
    const uint16x8_t lanes = vidupq_n_u16(0, 1);
    return vmlaq_n_u16(vshrq_n_u16(lanes, 1), vandq_u16(lanes, vdupq_n_u16(1)), (uint16_t)apart);
}

/* What all pairs of a call share. */
static inline void open(nn_mve_pairs *p, const void *constants, int32_t inputs, int32_t outputs,
                        int32_t *sums) {
    const nn_mve_head *head = (const nn_mve_head *)constants;
    p->low = vdupq_n_s16((int16_t)head->common.clamp_min);
    p->high = vdupq_n_s16((int16_t)head->common.clamp_max);
    p->factors = (const int32_t *)(const void *)(head + 1);
    p->weights = (const int8_t *)(p->factors + ((outputs + 3) & ~3) * 2);
    p->outputs = outputs;
    p->zero_point = head->common.output_zero_point;
    p->mode = head->mode;
    p->inputs = inputs;
    p->before_last = (inputs - 1) & ~15;
    p->sums = sums;
}

/* Two pixels a time, from now on; their inputs `step` bytes further each time, pixels of the output
 * `apart`. */
static inline void take_pairs(nn_mve_pairs *p, int32_t step, int32_t apart) {
    p->x_step = step;
    p->out_step = 2 * apart;
    p->offsets = offsets_for(apart);
    p->dots = dots_for(p->inputs);
}

/* The pixel with inputs at x0. */
static inline void run_single(nn_mve_pairs *p) {
    p->x1 = p->x0;
    p->pairs = 1;
    p->offsets = offsets_for(0);
    /* Up to three vectors stay in registers, which is worth more than what is computed twice. */
    p->dots = p->inputs <= 48 ? dots_for(p->inputs) : nn_mve_dots_single;
    nn_mve_run_pairs(p);
}

/* Whether every output's inputs are one pixel of the input. */
static inline int is_direct(const nn_conv_geometry *g, const nn_view *in, const nn_view *out) {
    return (g->kernel_h | g->kernel_w) == 1 && (g->pad_top | g->pad_left) == 0 &&
           (out->height - 1) * g->stride_h < in->height &&
           (out->width - 1) * g->stride_w < in->width;
}

/* A row of outputs whose inputs are pixels of `row`. */
static inline void direct_row(nn_mve_pairs *p, const nn_view *in, int32_t stride, const int8_t *row,
                              const nn_view *out, int32_t y, const nn_window *window) {
    const int32_t step = stride * in->pixel_stride;
    int32_t count;
    for (int32_t x = window->x0; x < window->x1; x += count) {
        const int32_t column = nn_column(in, x * stride);
        const int8_t *first = row + column * in->pixel_stride;
        count = nn_run(out, x, window->x1 - x);
        if (column + (count - 1) * stride >= in->ring_cols) { /* up to where the ring ends */
            count = (in->ring_cols - column + stride - 1) / stride;
        }
        p->x0 = first;
        p->x1 = first + step;
        p->out = nn_out_pixel(out, y, x);
        p->pairs = count >> 1;
        if (p->pairs > 0) {
            take_pairs(p, 2 * step, out->pixel_stride);
            nn_mve_run_pairs(p);
        }
        if ((count & 1) != 0) {
            run_single(p);
        }
    }
}

static inline __attribute__((always_inline)) void find_rows(tap_rows *rows, const convolution *c,
                                                            int32_t y) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    rows->top = y * g->stride_h - g->pad_top;
    rows->known = g->kernel_h <= MAX_ROWS;
    rows->inside = rows->known && c->joined;
    for (int32_t ky = 0; rows->known && ky < g->kernel_h; ky++) {
        const int32_t row = rows->top + ky * g->dilation_h;
        rows->row[ky] = row >= 0 && row < in->height ? nn_row(in, row) : NULL;
        rows->inside &= rows->row[ky] != NULL;
    }
}

/* A row of outputs whose inputs are gathered. */
static inline void gathered_row(nn_mve_pairs *p, const convolution *c, const nn_view *out,
                                int32_t y, const nn_window *window, int8_t *patch) {
    const nn_conv_geometry *g = c->geometry;
    int8_t *const second = patch + ((c->size + 15) & ~15);
    tap_rows rows;
    int32_t count;
    find_rows(&rows, c, y);
    for (int32_t x = window->x0; x < window->x1; x += count) {
        count = nn_run(out, x, window->x1 - x);
        int32_t left = x * g->stride_w - g->pad_left;
        p->x0 = patch;
        p->x1 = second;
        p->out = nn_out_pixel(out, y, x);
        take_pairs(p, 0, out->pixel_stride);
        for (int32_t pairs = count >> 1; pairs > 0; pairs--, left += 2 * g->stride_w) {
            gather_two(c, &rows, left, patch, second);
            p->pairs = 1;
            nn_mve_run_pairs(p);
        }
        if ((count & 1) != 0) {
            gather(c, &rows, left, patch);
            run_single(p);
        }
    }
}

int32_t nn_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    const int32_t size = geometry->kernel_h * geometry->kernel_w * in->channels;
    return is_direct(geometry, in, out) ? 0 : 2 * ((size + 15) & ~15);
}

/* All of a call whose output's pixels are near enough for pairs. */
static NN_NOINLINE void compute_pairs(const nn_conv_geometry *geometry, const void *constants,
                                      const nn_view *in, const nn_view *out,
                                      const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t segment = g->kernel_w * in->channels, size = g->kernel_h * segment;
    const int32_t zero_point = ((const nn_mve_head *)constants)->common.input_zero_point;
    int32_t sums[2 * NN_MVE_BLOCK];
    nn_mve_pairs p;
    open(&p, constants, size, out->channels, sums);
    if (is_direct(g, in, out)) {
        for (int32_t y = window->y0; y < window->y1; y++) {
            direct_row(&p, in, g->stride_w, nn_row(in, y * g->stride_h), out, y, window);
        }
    } else {
        const int joined = g->kernel_w == 1 || (g->dilation_w == 1 && nn_dense(in));
        const int32_t pixel = in->pixel_stride, next = g->stride_w * pixel;
        const convolution c = {
            g, in, zero_point, segment, size, joined, pixel, next, g->stride_w + g->kernel_w};
        for (int32_t y = window->y0; y < window->y1; y++) {
            gathered_row(&p, &c, out, y, window, (int8_t *)scratch);
        }
    }
}

/* All of a call whose output's pixels are too far apart for pairs: each by itself. */
static NN_NOINLINE void compute_singles(const nn_conv_geometry *geometry, const void *constants,
                                        const nn_view *in, const nn_view *out,
                                        const nn_window *window, void *scratch) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_window one = {y, y + 1, x, x + 1};
            compute_pairs(geometry, constants, in, out, &one, scratch);
        }
    }
}

void nn_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    if (out->pixel_stride > MAX_APART) {
        compute_singles(geometry, constants, in, out, window, scratch);
    } else {
        compute_pairs(geometry, constants, in, out, window, scratch);
    }
}
