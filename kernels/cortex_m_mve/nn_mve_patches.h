/* Gathers a convolution's patches: the inputs of an output pixel, row by row of taps, with the zero
 * point where there is padding. */
#ifndef NN_MVE_PATCHES_H
#define NN_MVE_PATCHES_H

#include "nn_mve.h"

#define MAX_ROWS 12 /* of a kernel whose rows' places are remembered; they lie on the stack */

#define SMALL 512 /* bytes of a patch that is filled as a whole, if any of it is padding */

/* The patches of a row of outputs. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_view *in;
    int32_t zero_point;
    int32_t segment;             /* bytes of a row of taps */
    int joined;                  /* rows are few, and a row's columns lie one after the other */
    int dense;                   /* with nothing between them */
    int in_place;                /* patches are runs of the input */
    int32_t next;                /* bytes from a pixel's taps to those of its neighbour */
    int32_t top;                 /* number of the first row of taps */
    int inside;                  /* they are, and no row is padding */
    const int8_t *row[MAX_ROWS]; /* NULL: padding; only where they are joined */
} nn_mve_patches;

static NN_NOINLINE void nn_mve_set_patches(nn_mve_patches *p, const nn_conv_geometry *g,
                                           const nn_view *in, int32_t zero_point) {
    p->geometry = g;
    p->in = in;
    p->zero_point = zero_point;
    p->segment = g->kernel_w * in->channels;
    p->joined = g->kernel_h <= MAX_ROWS && (g->kernel_w == 1 || g->dilation_w == 1);
    p->dense = g->kernel_w == 1 || nn_dense(in);
    p->in_place = g->kernel_h == 1 && p->dense;
    p->next = g->stride_w * in->pixel_stride;
}

/* Finds the rows of taps of output row y. */
static NN_NOINLINE void nn_mve_find_rows(nn_mve_patches *p, int32_t y) {
    const nn_conv_geometry *g = p->geometry;
    const nn_view *in = p->in;
    p->top = y * g->stride_h - g->pad_top;
    p->inside = p->joined;
    for (int32_t ky = 0; p->joined && ky < g->kernel_h; ky++) {
        const int32_t row = p->top + ky * g->dilation_h;
        p->row[ky] = row >= 0 && row < in->height ? nn_row(in, row) : NULL;
        p->inside &= p->row[ky] != NULL;
    }
}

/* Gathers a patch tap by tap: any dilation, any ring, any number of rows. */
static NN_NOINLINE void nn_mve_gather_taps(const nn_mve_patches *p, int32_t left, int8_t *patch) {
    const nn_conv_geometry *g = p->geometry;
    const nn_view *in = p->in;
    const nn_taps taps = nn_valid_taps(left, in->width, g->kernel_w, g->dilation_w);
    const int32_t channels = in->channels, before = taps.first * channels;
    const int32_t ring = in->ring_cols * in->pixel_stride, end = p->segment - taps.end * channels;
    const int32_t step = g->dilation_w % in->ring_cols * in->pixel_stride;
    int32_t start = 0; /* of the first column that is met */
    if (taps.first < taps.end) {
        start = nn_column(in, left + taps.first * g->dilation_w) * in->pixel_stride;
    }
    for (int32_t ky = 0; ky < g->kernel_h; ky++, patch += p->segment) {
        const int32_t y = p->top + ky * g->dilation_h;
        if (y < 0 || y >= in->height) {
            nn_mve_fill(patch, p->zero_point, p->segment);
            continue;
        }
        const int8_t *row = nn_row(in, y);
        int8_t *tap = patch + before;
        nn_mve_fill(patch, p->zero_point, before);
        for (int32_t kx = taps.first, place = start; kx < taps.end; kx++, tap += channels) {
            nn_mve_copy(tap, row + place, channels);
            place += step;
            place -= place >= ring ? ring : 0;
        }
        nn_mve_fill(tap, p->zero_point, end);
    }
}

/* Copies the channels of so many columns of which others lie between: parts of a wider tensor. */
static inline void nn_mve_copy_columns(const nn_mve_patches *p, int8_t *to, const int8_t *from,
                                       int32_t columns) {
    const int32_t channels = p->in->channels, step = p->in->pixel_stride;
    for (; columns > 0; columns--, from += step, to += channels) {
        nn_mve_copy(to, from, channels);
    }
}

/* Gathers the patch of the pixel with its taps from column `left` on. */
static NN_NOINLINE void nn_mve_gather(const nn_mve_patches *p, int32_t left, int8_t *patch) {
    const nn_conv_geometry *g = p->geometry;
    const nn_view *in = p->in;
    const nn_taps taps = nn_valid_taps(left, in->width, g->kernel_w, 1);
    const int32_t channels = in->channels, count = taps.end - taps.first;
    const int32_t column = count > 0 ? nn_column(in, left + taps.first) : 0;
    const int32_t before = taps.first * channels, bytes = count * channels;
    if (!p->joined || column + count > in->ring_cols) {
        nn_mve_gather_taps(p, left, patch);
        return;
    }
    const int32_t size = g->kernel_h * p->segment, small = size <= SMALL;
    if (small && (!p->inside || bytes < p->segment)) {
        nn_mve_fill(patch, p->zero_point, size);
    }
    for (int32_t ky = 0; ky < g->kernel_h; ky++, patch += p->segment) {
        if (!small && p->row[ky] == NULL) {
            nn_mve_fill(patch, p->zero_point, p->segment);
        } else if (!small) {
            nn_mve_fill(patch, p->zero_point, before);
            nn_mve_fill(patch + before + bytes, p->zero_point, p->segment - before - bytes);
        }
        if (p->row[ky] != NULL && p->dense) {
            nn_mve_copy(patch + before, p->row[ky] + column * in->pixel_stride, bytes);
        } else if (p->row[ky] != NULL) {
            nn_mve_copy_columns(p, patch + before, p->row[ky] + column * in->pixel_stride, count);
        }
    }
}

/* How many pairs of neighbours, the first pixel with its taps from column `left` on, meet no
 * columns of padding, nor the end of a ring. */
static NN_NOINLINE int32_t nn_mve_pairs_inside(const nn_mve_patches *p, int32_t left) {
    if (!p->joined || left < 0 || left >= p->in->width) {
        return 0;
    }
    const int32_t stride = p->geometry->stride_w, columns = stride + p->geometry->kernel_w;
    const int32_t room =
        nn_min(p->in->width - left, p->in->ring_cols - nn_column(p->in, left)) - columns;
    return room < 0 ? 0 : room / (2 * stride) + 1;
}

/* Gathers a row of taps of such a pair, from x0 on and `next` bytes further, where columns of up to
 * 16 channels have others between them. */
static NN_NOINLINE void nn_mve_gather_narrow(const nn_mve_patches *p, const int8_t *x0,
                                             int8_t *first, int8_t *second) {
    const int32_t channels = p->in->channels, step = p->in->pixel_stride, next = p->next;
    const mve_pred16_t all = vctp8q((uint32_t)channels);
    for (int32_t kx = p->geometry->kernel_w; kx > 0; kx--, x0 += step) {
        vstrbq_p_s8(first, vldrbq_z_s8(x0, all), all);
        vstrbq_p_s8(second, vldrbq_z_s8(x0 + next, all), all);
        first += channels;
        second += channels;
    }
}

/* Gathers the patches of such a pair, whose taps are `offset` bytes into the rows: 16 bytes of each
 * pixel in turns. */
static NN_NOINLINE void nn_mve_gather_pair(const nn_mve_patches *p, int32_t offset, int8_t *first,
                                           int8_t *second) {
    const int32_t segment = p->segment, next = p->next, columns = p->geometry->kernel_w;
    const int8_t *const *row = p->row;
    for (int32_t ky = p->geometry->kernel_h; ky > 0; ky--, first += segment, second += segment) {
        const int8_t *x0 = *row++, *x1;
        int8_t *to0 = first, *to1 = second;
        if (x0 == NULL) {
            nn_mve_fill(first, p->zero_point, segment);
            nn_mve_fill(second, p->zero_point, segment);
            continue;
        }
        x0 += offset;
        x1 = x0 + next;
        if (!p->dense && p->in->channels <= 16) {
            nn_mve_gather_narrow(p, x0, first, second);
            continue;
        }
        if (!p->dense) {
            nn_mve_copy_columns(p, first, x0, columns);
            nn_mve_copy_columns(p, second, x1, columns);
            continue;
        }
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

#endif
