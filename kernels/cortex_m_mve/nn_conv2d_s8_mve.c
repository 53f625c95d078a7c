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
#include "nn_mve_conv.h"

/* Output columns from x on that lie one after the other, and that pairs are made of. */
static inline int32_t columns_from(const nn_view *out, int32_t x, int32_t end) {
    return out->pixel_stride > NN_MVE_MAX_APART ? 1 : nn_run(out, x, end - x);
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
    int32_t count;
    for (int32_t x = window->x0; x < window->x1; x += count) {
        const int32_t column = nn_column(in, x * stride);
        count = columns_from(out, x, window->x1);
        if (column + (count - 1) * stride >= in->ring_cols) { /* up to where the ring ends */
            count = (in->ring_cols - column + stride - 1) / stride;
        }
        p->x0 = row + column * in->pixel_stride;
        p->x1 = p->x0 + stride * in->pixel_stride;
        p->out = nn_out_pixel(out, y, x);
        if (count > 1) {
            nn_mve_run(p, out->pixel_stride, count >> 1);
        }
        if ((count & 1) != 0) {
            nn_mve_run_single(p);
        }
    }
}

static NN_NOINLINE void compute_direct(const nn_conv_geometry *g, const void *constants,
                                       const nn_view *in, const nn_view *out,
                                       const nn_window *window) {
    nn_mve_pairs p;
    nn_mve_open_pairs(&p, constants, in->channels, out, 2 * g->stride_w * in->pixel_stride);
    for (int32_t y = window->y0; y < window->y1; y++) {
        direct_row(&p, in, g->stride_w, nn_row(in, y * g->stride_h), out, y, window);
    }
}

static NN_NOINLINE void compute_gathered(const nn_conv_geometry *g, const void *constants,
                                         const nn_view *in, const nn_view *out,
                                         const nn_window *window, int8_t *scratch) {
    nn_mve_patches patches;
    nn_mve_pairs p;
    nn_mve_set_patches(&patches, g, in, ((const nn_mve_head *)constants)->common.input_zero_point);
    nn_mve_open_pairs(&p, constants, g->kernel_h * patches.segment, out, 0);
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_mve_find_rows(&patches, y);
        for (int32_t x = window->x0, count; x < window->x1; x += count) {
            count = columns_from(out, x, window->x1);
            p.out = nn_out_pixel(out, y, x);
            nn_mve_gathered_run(&p, &patches, out->pixel_stride, x * g->stride_w - g->pad_left,
                                count, scratch);
        }
    }
}

int32_t nn_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    const int32_t size = geometry->kernel_h * geometry->kernel_w * in->channels;
    return is_direct(geometry, in, out) ? 0 : 2 * ((size + 15) & ~15);
}

void nn_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    if (is_direct(geometry, in, out)) {
        compute_direct(geometry, constants, in, out, window);
    } else {
        compute_gathered(geometry, constants, in, out, window, (int8_t *)scratch);
    }
}
