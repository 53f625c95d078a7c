/* CONV_2D without groups, Helium: dot products of 16 bytes, two pixels by three channels at a time.
 *
 * constants: nn_mve_head; for each four channels their multipliers, then their shifts (int32[8]);
 * then, with n = ceil(kernel_h * kernel_w * cin / 16) and weights in O H W I order padded to 16 n
 * bytes a channel,
 *   tiles of three channels: int32[6], each bias twice, then n times 16 weights of each channel;
 *   the one or two channels left: int32[2], the bias twice, then 16 n weights.
 * Each part begins where the one before it ends. The bias is that of nn_conv_constants.
 *
 * A pixel's inputs are read where they are if they lie one after the other (kernel 1 x 1), else
 * they are gathered into scratch first, with the zero point where there is padding. The sums of up
 * to BLOCK channels of both pixels go through scratch.
 */
#include "nn_mve.h"

#define BLOCK 48 /* channels; a multiple of 3 and of 4 */

/* What dot_tiles reads: its assembly knows the order. */
typedef struct {
    const int8_t *x0, *x1; /* the two pixels' inputs */
    const int8_t *weights; /* the first tile */
    int32_t padded;        /* 16 n */
    int32_t *sums;         /* [channel][pixel] */
    int32_t bytes;         /* inputs of a pixel */
    int32_t tiles, rest;   /* tiles of three channels, then single channels */
} dot_arguments;

/* Computes the sums of both pixels; returns the weights behind those it used. By hand, since what
 * counts is that six sums stay in registers that VMLADAVA can name (even ones), that one LDM brings
 * in six biases, and one STM puts six sums out. */
static NN_MVE_NAKED const int8_t *dot_tiles(const dot_arguments *arguments) {
    __asm volatile("push {r0, r4-r11, lr}\n"
                   "ldm r0, {r1, r3, r5, r7, r9, r11, r12}\n"
                   "cmp r12, #0\n"
                   "beq 5f\n"
                   "cmp r7, #32\n"
                   "blo 2f\n"
                   "beq 3f\n"
                   /* any number of vectors a channel */
                   "0:\n"
                   "ldm r5!, {r0, r2, r4, r6, r8, r10}\n"
                   "dlstp.8 lr, r11\n"
                   "1:\n"
                   "vldrb.u8 q0, [r1], #16\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r0, q0, q2\n"
                   "vldrb.u8 q1, [r3], #16\n"
                   "vmladava.s8 r2, q1, q2\n"
                   "vldrb.u8 q3, [r5], #16\n"
                   "vmladava.s8 r4, q0, q3\n"
                   "vmladava.s8 r6, q1, q3\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r8, q0, q2\n"
                   "vmladava.s8 r10, q1, q2\n"
                   "letp lr, 1b\n"
                   "sub r1, r1, r7\n"
                   "sub r3, r3, r7\n"
                   "stm r9!, {r0, r2, r4, r6, r8, r10}\n"
                   "subs r12, r12, #1\n"
                   "bne 0b\n"
                   "b 5f\n"
                   /* one vector: the inputs stay in registers */
                   "2:\n"
                   "vctp.8 r11\n"
                   "vpstt\n"
                   "vldrbt.u8 q0, [r1]\n"
                   "vldrbt.u8 q1, [r3]\n"
                   "dls lr, r12\n"
                   "1:\n"
                   "ldm r5!, {r0, r2, r4, r6, r8, r10}\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r0, q0, q2\n"
                   "vmladava.s8 r2, q1, q2\n"
                   "vldrb.u8 q3, [r5], #16\n"
                   "vmladava.s8 r4, q0, q3\n"
                   "vmladava.s8 r6, q1, q3\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r8, q0, q2\n"
                   "vmladava.s8 r10, q1, q2\n"
                   "stm r9!, {r0, r2, r4, r6, r8, r10}\n"
                   "le lr, 1b\n"
                   "b 5f\n"
                   /* two vectors: likewise */
                   "3:\n"
                   "vpush {d8-d11}\n"
                   "sub r11, r11, #16\n"
                   "vctp.8 r11\n"
                   "vldrb.u8 q0, [r1]\n"
                   "vldrb.u8 q1, [r3]\n"
                   "vpstt\n"
                   "vldrbt.u8 q4, [r1, #16]\n"
                   "vldrbt.u8 q5, [r3, #16]\n"
                   "add r11, r11, #16\n"
                   "dls lr, r12\n"
                   "1:\n"
                   "ldm r5!, {r0, r2, r4, r6, r8, r10}\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r0, q0, q2\n"
                   "vmladava.s8 r2, q1, q2\n"
                   "vldrb.u8 q3, [r5], #16\n"
                   "vmladava.s8 r4, q0, q3\n"
                   "vmladava.s8 r6, q1, q3\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r8, q0, q2\n"
                   "vmladava.s8 r10, q1, q2\n"
                   "vldrb.u8 q3, [r5], #16\n"
                   "vmladava.s8 r0, q4, q3\n"
                   "vmladava.s8 r2, q5, q3\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r4, q4, q2\n"
                   "vmladava.s8 r6, q5, q2\n"
                   "vldrb.u8 q3, [r5], #16\n"
                   "vmladava.s8 r8, q4, q3\n"
                   "vmladava.s8 r10, q5, q3\n"
                   "stm r9!, {r0, r2, r4, r6, r8, r10}\n"
                   "le lr, 1b\n"
                   "vpop {d8-d11}\n"
                   /* single channels */
                   "5:\n"
                   "ldr r12, [sp]\n"
                   "ldr r12, [r12, #28]\n"
                   "cmp r12, #0\n"
                   "beq 7f\n"
                   "6:\n"
                   "ldm r5!, {r0, r2}\n"
                   "dlstp.8 lr, r11\n"
                   "1:\n"
                   "vldrb.u8 q0, [r1], #16\n"
                   "vldrb.u8 q2, [r5], #16\n"
                   "vmladava.s8 r0, q0, q2\n"
                   "vldrb.u8 q1, [r3], #16\n"
                   "vmladava.s8 r2, q1, q2\n"
                   "letp lr, 1b\n"
                   "sub r1, r1, r7\n"
                   "sub r3, r3, r7\n"
                   "stm r9!, {r0, r2}\n"
                   "subs r12, r12, #1\n"
                   "bne 6b\n"
                   "7:\n"
                   "mov r0, r5\n"
                   "add sp, #4\n"
                   "pop {r4-r11, pc}\n");
}

/* What the pixels of one call share. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_mve_head *head;
    const nn_view *in;
    int32_t segment;        /* bytes of a row of taps */
    int32_t size;           /* of a patch */
    const int32_t *factors; /* for each four channels multipliers and shifts */
    const int8_t *weights;
    int32_t outputs;
} convolution;

/* Gathers a patch that meets padding, or whose inputs do not lie in rows one after the other. */
static void gather_any(const convolution *c, int32_t top, int32_t left, int8_t *patch) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    const int32_t zero_point = c->head->common.input_zero_point;
    for (int32_t ky = 0; ky < g->kernel_h; ky++, patch += c->segment) {
        const int32_t y = top + ky * g->dilation_h;
        if (y < 0 || y >= in->height) {
            nn_mve_fill(patch, zero_point, c->segment);
            continue;
        }
        const int8_t *row = nn_row(in, y);
        int8_t *tap = patch;
        for (int32_t kx = 0; kx < g->kernel_w; kx++, tap += in->channels) {
            const int32_t x = left + kx * g->dilation_w;
            if (x < 0 || x >= in->width) {
                nn_mve_fill(tap, zero_point, in->channels);
            } else {
                nn_mve_copy(tap, row + nn_column(in, x) * in->channels, in->channels);
            }
        }
    }
}

/* Gathers the patch of the output pixel whose first tap is (top, left); `row`: input row top, if
 * all rows are inside, else NULL. */
static inline void gather(const convolution *c, int32_t top, int32_t left, const int8_t *row,
                          int8_t *patch) {
    const nn_conv_geometry *g = c->geometry;
    const nn_view *in = c->in;
    if (row != NULL && left >= 0 && left + g->kernel_w <= in->width && g->dilation_w == 1) {
        const int32_t column = nn_column(in, left);
        if (column + g->kernel_w <= in->ring_cols) {
            const int8_t *end = in->data + in->ring_rows * in->row_stride;
            const int32_t down = g->dilation_h % in->ring_rows * in->row_stride;
            const int32_t segment = c->segment, offset = column * in->channels;
            const mve_pred16_t first = vctp8q((uint32_t)segment);
            int32_t ky = g->kernel_h;
            do {
                if (segment <= 16) {
                    vstrbq_p_s8(patch, vldrbq_z_s8(row + offset, first), first);
                } else {
                    nn_mve_copy(patch, row + offset, segment);
                }
                patch += segment;
                row += down;
                row -= row >= end ? in->ring_rows * in->row_stride : 0;
            } while (--ky > 0);
            return;
        }
    }
    gather_any(c, top, left, patch);
}

/* Puts out `channels` sums of two pixels. `offsets`: 0, d, 1, d + 1, ... with d bytes from one to
 * the other. */
static inline void finish_as(const convolution *c, const int32_t *factors, const int32_t *sums,
                             int8_t *out, int32_t channels, uint16x8_t offsets, int mode) {
    const nn_conv_constants *common = &c->head->common;
    const int16x8_t low = vdupq_n_s16((int16_t)common->clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)common->clamp_max);
    const int32_t zero_point = common->output_zero_point;
    for (; channels > 0; channels -= 4, out += 4, sums += 8, factors += 8) {
        const int32x4x2_t pair = vld2q_s32(sums);
        const int32x4_t multiplier = vldrwq_s32(factors), shift = vldrwq_s32(factors + 4);
        const int32x4_t first = nn_mve_requantise(pair.val[0], multiplier, shift, mode);
        const int32x4_t second = nn_mve_requantise(pair.val[1], multiplier, shift, mode);
        const int16x8_t result = nn_mve_narrow(first, second, zero_point, low, high);
        if (channels < 4) {
            vstrbq_scatter_offset_p_s16(out, offsets, result, vctp16q(2 * (uint32_t)channels));
            return;
        }
        vstrbq_scatter_offset_s16(out, offsets, result);
    }
}

static inline void finish(const convolution *c, const int32_t *factors, const int32_t *sums,
                          int8_t *out, int32_t channels, uint16x8_t offsets) {
    switch (c->head->mode) {
    case NN_MVE_PLAIN:
        finish_as(c, factors, sums, out, channels, offsets, NN_MVE_PLAIN);
        break;
    case NN_MVE_ODD:
        finish_as(c, factors, sums, out, channels, offsets, NN_MVE_ODD);
        break;
    default:
        finish_as(c, factors, sums, out, channels, offsets, NN_MVE_GENERAL);
    }
}

/* All channels of two pixels, whose outputs are `apart` bytes apart. */
static inline void compute(const convolution *c, const int8_t *x0, const int8_t *x1, int8_t *out,
                           int32_t apart) {
    const uint16x8_t lanes = vidupq_n_u16(0, 1);
    const uint16x8_t odd = vandq_u16(lanes, vdupq_n_u16(1));
    const uint16x8_t offsets = vmlaq_n_u16(vshrq_n_u16(lanes, 1), odd, (uint16_t)apart);
    const int32_t *factors = c->factors;
    int32_t sums[2 * BLOCK];
    dot_arguments dots = {x0, x1, c->weights, (c->size + 15) & ~15, sums, c->size, 0, 0};
    for (int32_t left = c->outputs; left > 0; left -= BLOCK) {
        const int32_t count = nn_min(left, BLOCK);
        dots.tiles = count / 3;
        dots.rest = count - 3 * dots.tiles;
        dots.weights = dot_tiles(&dots);
        finish(c, factors, sums, out, count, offsets);
        factors += 2 * BLOCK;
        out += BLOCK;
    }
}

/* Where the constants' parts begin. */
static inline convolution open(const nn_conv_geometry *geometry, const void *constants,
                               const nn_view *in, int32_t outputs) {
    convolution c;
    c.geometry = geometry;
    c.head = (const nn_mve_head *)constants;
    c.in = in;
    c.segment = geometry->kernel_w * in->channels;
    c.size = geometry->kernel_h * c.segment;
    c.factors = (const int32_t *)(const void *)(c.head + 1);
    c.weights = (const int8_t *)(c.factors + ((outputs + 3) & ~3) * 2);
    c.outputs = outputs;
    return c;
}

/* Whether every output's inputs are one pixel of the input. */
static inline int is_direct(const nn_conv_geometry *g, const nn_view *in, const nn_view *out) {
    return (g->kernel_h | g->kernel_w) == 1 && (g->pad_top | g->pad_left) == 0 &&
           (out->height - 1) * g->stride_h < in->height &&
           (out->width - 1) * g->stride_w < in->width;
}

int32_t nn_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    const int32_t size = geometry->kernel_h * geometry->kernel_w * in->channels;
    return is_direct(geometry, in, out) ? 0 : 2 * ((size + 15) & ~15);
}

void nn_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const convolution c = open(geometry, constants, in, out->channels);
    const int direct = is_direct(g, in, out);
    int8_t *const patch = (int8_t *)scratch;
    int8_t *const second = patch + ((c.size + 15) & ~15);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const int inside = top >= 0 && top + (g->kernel_h - 1) * g->dilation_h < in->height;
        const int8_t *row = inside ? nn_row(in, top) : NULL;
        int8_t *const out_row = nn_row(out, y);
        int32_t column = nn_column(out, window->x0), count;
        for (int32_t x = window->x0; x < window->x1; x += count) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const int8_t *x0 = patch, *x1 = second;
            int8_t *const result = out_row + column * out->channels;
            count = x + 1 < window->x1 && column + 1 < out->ring_cols ? 2 : 1;
            if (direct) {
                x0 = row + nn_column(in, left) * in->channels;
                x1 = row + nn_column(in, left + g->stride_w) * in->channels;
            } else {
                gather(&c, top, left, row, patch);
                if (count == 2) {
                    gather(&c, top, left + g->stride_w, row, second);
                }
            }
            x1 = count == 2 ? x1 : x0;
            compute(&c, x0, x1, result, count == 2 ? out->channels : 0);
            column += count;
            column = column >= out->ring_cols ? 0 : column;
        }
    }
}
