/* What the Helium (Armv8.1-M MVE, integer) kernels share: requantisation, patches, blocks of
 * constants.
 *
 * VQRDMULH is round(a * b / 2^31), halves up: exactly the reference's first rounding. VRSHL rounds
 * halves up as well, but the reference's second rounding takes halves away from zero; subtracting 1
 * from a negative quotient first makes them equal. VQDMLAH(q, q, 1) does that in one instruction:
 * q + floor(2 * q / 2^32). An output that is clamped at the zero point needs no such care.
 */
#ifndef NN_MVE_H
#define NN_MVE_H

#include <arm_mve.h>
#include <stddef.h>

#include "nn_area.h"
#include "nn_cortex_m_mve.h"

#define NN_NOINLINE __attribute__((noinline, unused))
/* Fails to compile unless a struct's member is where the assembly expects it. */
#define NN_MVE_AT(type, member, offset)                                                            \
    typedef char type##_##member##_is_at[offsetof(type, member) == (offset) ? 1 : -1]

/* How a layer's channels are requantised; the packing knows. Depthwise layers are plain or general,
 * which is said at their kernel. */
enum {
    NN_MVE_PLAIN = 0,   /* all shifts right, and nothing below the zero point is put out */
    NN_MVE_ODD = 1,     /* all shifts right by at least one bit */
    NN_MVE_GENERAL = 2, /* any */
};

/* Begins every block of constants of a convolution; what follows is said at each kernel. */
typedef struct {
    nn_conv_constants common;
    int32_t mode; /* NN_MVE_* */
    int32_t reserved[3];
} nn_mve_head;

/* Two vectors of requantised sums as int16, element i of the first before that of the second, with
 * the zero point added and clamped: exact, since what saturates is clamped anyway. */
static inline int16x8_t nn_mve_narrow(int32x4_t first, int32x4_t second, int32_t zero_point,
                                      int16x8_t low, int16x8_t high) {
    int16x8_t both = vqmovnbq_s32(vreinterpretq_s16_s32(first), first);
    both = vqaddq_n_s16(vqmovntq_s32(both, second), (int16_t)zero_point);
    return vminq_s16(vmaxq_s16(both, low), high);
}

/* `pixels` of the output, each with `count` elements: element i of a pixel is made of the elements
 * i of both operands' pixels, or of the only one that an operand with one channel has. Steps are
 * bytes from pixel to pixel. */
typedef struct {
    const int8_t *a, *b;
    int8_t *out;
    int32_t count, pixels, a_step, b_step, out_step;
} nn_mve_strip;

typedef void nn_mve_compute_strip(const void *plan, const nn_mve_strip *strip);

/* Moves on to the strip's next pixel. */
static inline void nn_mve_next_pixel(nn_mve_strip *s) {
    s->pixels--;
    s->a += s->a_step;
    s->b += s->b_step;
    s->out += s->out_step;
}

typedef int16x8_t nn_mve_of_eight(int16x8_t a, int16x8_t b, const void *plan);

/* Puts out what `of` makes of the strip's elements, eight at a time; nothing outside is read or
 * written. `single`: the second operand's pixels are one element. */
static inline __attribute__((always_inline)) void
nn_mve_each_eight(const nn_mve_strip *strip, int single, nn_mve_of_eight *of, const void *plan) {
    for (nn_mve_strip s = *strip; s.pixels > 0; nn_mve_next_pixel(&s)) {
        const int8_t *a = s.a, *b = s.b;
        int8_t *out = s.out;
        int32_t count = strip->count;
        const int16x8_t only = vdupq_n_s16(*b);
        for (; count >= 8; count -= 8, a += 8, out += 8) {
            vstrbq_s16(out, of(vldrbq_s16(a), single ? only : vldrbq_s16(b), plan));
            b += single ? 0 : 8;
        }
        if (count > 0) {
            const mve_pred16_t some = vctp16q((uint32_t)count);
            const int16x8_t second = single ? only : vldrbq_z_s16(b, some);
            vstrbq_p_s16(out, of(vldrbq_z_s16(a, some), second, plan), some);
        }
    }
}

/* Bytes from the view's data to a window's elements if they lie one after the other with nothing
 * between them, `dense` bytes a pixel; else -1. */
static NN_NOINLINE int32_t nn_mve_block(const nn_view *view, int32_t channels, int32_t dense,
                                        const nn_window *window) {
    const int32_t ring = view->ring_rows, rows = window->y1 - window->y0;
    const int32_t columns = window->x1 - window->x0;
    int32_t row = window->y0;
    if (view->channels != channels || view->pixel_stride != dense || view->x0 != window->x0 ||
        view->ring_cols != columns || (rows > 1 && view->row_stride != columns * dense)) {
        return -1;
    }
    if (window->y1 > ring) {
        row %= ring;
        if (row + rows > ring) {
            return -1;
        }
    }
    return row * view->row_stride;
}

/* Whether the views differ in their data alone. */
static inline int nn_mve_are_alike(const nn_view *a, const nn_view *b, const nn_view *c) {
    int32x4_t apart = vdupq_n_s32(0);
    for (int32_t i = 0; i < 8; i += 4) {
        const int32x4_t first = vldrwq_s32(&a->row_stride + i);
        apart = vorrq_s32(apart, veorq_s32(first, vldrwq_s32(&b->row_stride + i)));
        apart = vorrq_s32(apart, veorq_s32(first, vldrwq_s32(&c->row_stride + i)));
    }
    return vcmpneq_n_s32(apart, 0) == 0;
}

/* Calls `compute` for strips that cover the window; elements have `bytes` bytes. Where nothing lies
 * between the pixels of any view, a strip is one long pixel. */
static NN_NOINLINE void nn_mve_for_strips(int32_t bytes, nn_mve_compute_strip *compute,
                                          const void *plan, const nn_view *in1, const nn_view *in2,
                                          const nn_view *out, const nn_window *window) {
    const int32_t channels = out->channels, dense = bytes * channels;
    const int32_t to = nn_mve_block(out, channels, dense, window);
    nn_mve_strip s;
    if (to >= 0) {
        const int alike = nn_mve_are_alike(in1, in2, out);
        const int32_t from1 = alike ? to : nn_mve_block(in1, channels, dense, window);
        const int32_t from2 = alike ? to : nn_mve_block(in2, channels, dense, window);
        if (from1 >= 0 && from2 >= 0) {
            s.pixels = 1;
            s.a = in1->data + from1;
            s.b = in2->data + from2;
            s.out = nn_out_data(out) + to;
            s.count = (window->y1 - window->y0) * (window->x1 - window->x0) * channels;
            compute(plan, &s);
            return;
        }
    }
    s.a_step = in1->ring_cols > 1 ? in1->pixel_stride : 0; /* else one column serves all */
    s.b_step = in2->ring_cols > 1 ? in2->pixel_stride : 0;
    s.out_step = out->pixel_stride;
    const int joined = in1->channels == channels && in2->channels == channels &&
                       s.a_step == dense && s.b_step == dense && s.out_step == dense;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            s.a = nn_pixel(in1, y, x);
            s.b = nn_pixel(in2, y, x);
            s.out = nn_out_pixel(out, y, x);
            run = nn_run(out, x, window->x1 - x);
            run = s.a_step != 0 ? nn_run(in1, x, run) : run;
            run = s.b_step != 0 ? nn_run(in2, x, run) : run;
            s.pixels = joined ? 1 : run;
            s.count = joined ? run * channels : channels;
            compute(plan, &s);
        }
    }
}

/* Pixels of a view at even distances: `rows` times `columns` of them from `data` on. */
typedef struct {
    const int8_t *data;
    int32_t rows, columns, row_step, step; /* bytes from row to row, from column to column */
} nn_mve_grid;

#define NN_MVE_GRIDS                                                                               \
    4 /* that a window may lie in: rings of rows and of columns wrap around once                   \
       */

/* Divides a window into grids, and returns how many. */
static inline __attribute__((always_inline)) int32_t nn_mve_grids(const nn_area *area,
                                                                  nn_mve_grid *grids) {
    const nn_view *const in = area->in;
    const int32_t row = area->y % in->ring_rows, column = nn_column(in, area->x);
    const int32_t rows = nn_min(area->rows, in->ring_rows - row);
    const int32_t columns = nn_min(area->columns, in->ring_cols - column);
    const nn_mve_grid first = {in->data + row * in->row_stride + column * in->pixel_stride, rows,
                               columns, in->row_stride, in->pixel_stride};
    int32_t count = 1;
    grids[0] = first;
    if (columns < area->columns) {
        grids[count] = first;
        grids[count].data = in->data + row * in->row_stride;
        grids[count++].columns = area->columns - columns;
    }
    if (rows < area->rows) {
        for (int32_t i = count - 1; i >= 0; i--, count++) {
            grids[count] = grids[i];
            grids[count].data -= row * in->row_stride;
            grids[count].rows = area->rows - rows;
        }
    }
    return count;
}

/* Windows of `pixels` outputs in a row: the first one's, the others each `in_step` bytes further;
 * in one grid where they are more than one. */
typedef struct {
    nn_mve_grid grids[NN_MVE_GRIDS];
    int32_t parts, pixels, in_step, out_step, channels;
    int32_t count; /* elements of a window and a channel */
    const nn_pool_constants *constants;
    int8_t *out;
} nn_mve_pool;

/* May change `pool`: all but what is the same for all runs is set anew for the next. */
typedef void nn_mve_pool_run(nn_mve_pool *pool);

/* Has all pixels of a window computed, run by run. */
static NN_NOINLINE void nn_mve_for_pools(nn_mve_pool_run *compute, const nn_pool_geometry *g,
                                         const void *constants, const nn_view *in,
                                         const nn_view *out, const nn_window *window) {
    nn_mve_pool pool;
    pool.in_step = g->stride_w * in->pixel_stride;
    pool.out_step = out->pixel_stride;
    pool.channels = out->channels;
    pool.constants = (const nn_pool_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        for (int32_t x = window->x0; x < window->x1; x += pool.pixels) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const nn_area area = {in, top + rows.first, left + columns.first, rows.end - rows.first,
                                  columns.end - columns.first};
            pool.parts = nn_mve_grids(&area, pool.grids);
            pool.count = area.rows * area.columns;
            pool.pixels = 1;
            if (pool.parts == 1 && area.columns == g->kernel_w) {
                const int32_t here = nn_run(in, left, in->width - left);
                pool.pixels = (here - g->kernel_w) / g->stride_w + 1;
                pool.pixels = nn_run(out, x, nn_min(pool.pixels, window->x1 - x));
            }
            pool.out = nn_out_pixel(out, y, x);
            compute(&pool);
        }
    }
}

#define NN_MVE_SHORT_SUM 255 /* elements whose sum int16 always holds */

/* sum + `count` elements, `step` bytes apart, of eight channels: `all`, or `some`. */
static inline int16x8_t nn_mve_sum_line(int16x8_t sum, const int8_t *from, int32_t step,
                                        int32_t count, int all, mve_pred16_t some) {
    for (; count > 0; count--, from += step) {
        sum = vaddq_s16(sum, all ? vldrbq_s16(from) : vldrbq_z_s16(from, some));
    }
    return sum;
}

/* Adds any number of elements, as above: of the even channels, of the odd ones. */
static inline void nn_mve_sum_long(int32x4_t sums[2], const int8_t *from, int32_t step,
                                   int32_t count, mve_pred16_t some) {
    for (int32_t run; count > 0; count -= run, from += run * step) {
        const int16x8_t none = vdupq_n_s16(0);
        run = nn_min(count, NN_MVE_SHORT_SUM);
        const int16x8_t part = some == 0xFFFF ? nn_mve_sum_line(none, from, step, run, 1, some)
                                              : nn_mve_sum_line(none, from, step, run, 0, some);
        sums[0] = vaddq_s32(sums[0], vmovlbq_s16(part));
        sums[1] = vaddq_s32(sums[1], vmovltq_s16(part));
    }
}

/* Copies forward; nothing outside is read or written. */
static inline void nn_mve_copy(int8_t *to, const int8_t *from, int32_t bytes) {
    __asm volatile("wlstp.8 lr, %[bytes], 2f\n"
                   "1:\n"
                   "vldrb.u8 q0, [%[from]], #16\n"
                   "vstrb.8 q0, [%[to]], #16\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [from] "+r"(from), [to] "+r"(to)
                   : [bytes] "r"(bytes)
                   : "q0", "lr", "memory");
}

static inline void nn_mve_fill(int8_t *to, int32_t value, int32_t bytes) {
    __asm volatile("vdup.8 q0, %[value]\n"
                   "wlstp.8 lr, %[bytes], 2f\n"
                   "1:\n"
                   "vstrb.8 q0, [%[to]], #16\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [to] "+r"(to)
                   : [bytes] "r"(bytes), [value] "r"(value)
                   : "q0", "lr", "memory");
}

#endif
