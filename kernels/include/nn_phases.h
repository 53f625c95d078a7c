/* TRANSPOSE_CONV as convolutions without a stride: the outputs of one phase, those whose row and
 * column leave the same remainders, all meet the same taps, and meet neighbouring inputs.
 *
 * constants: for each phase, row by row, the offset of its block in bytes, an int32; from the next
 * multiple of 16 bytes on the blocks, as the kernel of convolutions reads them: with the phase's
 * taps in the order of the inputs, or a row or column of zeros where it has none. The offsets'
 * lowest bits are set where the phases of a row have equally many columns of taps, by zeros.
 */
#ifndef NN_PHASES_H
#define NN_PHASES_H

#include "nn_groups.h"

/* Taps of a phase along one axis. */
static inline int32_t nn_phase_taps(int32_t kernel, int32_t stride, int32_t phase) {
    return nn_max(1, (kernel - phase + stride - 1) / stride);
}

/* Bytes of the taps of as many pixels, of the phase that has most. */
static inline int32_t nn_phases_patch_bytes(const nn_conv_geometry *g, const nn_view *in,
                                            int32_t pixels) {
    const int32_t rows = nn_phase_taps(g->kernel_h, g->stride_h, 0);
    return pixels * rows * nn_phase_taps(g->kernel_w, g->stride_w, 0) * in->channels;
}

/* The outputs of one phase from (y, x) on: `rows` and `columns` of them, `step` columns apart. */
static inline void nn_phases_part(nn_conv_geometry *one, const void *block, const nn_view *in,
                                  const nn_view *out, int32_t y, int32_t x, int32_t rows,
                                  int32_t row_step, int32_t columns, int32_t step, void *scratch,
                                  nn_conv_kernel *kernel) {
    nn_view part = *out;
    part.row_stride = row_step * out->row_stride;
    part.pixel_stride = step * out->pixel_stride;
    part.ring_rows = rows;
    part.x0 = 0;
    part.height = rows;
    while (columns > 0) {
        const int32_t room = out->ring_cols - nn_column(out, x);
        const int32_t run = nn_min(columns, (room + step - 1) / step);
        const nn_window all = {0, rows, 0, run};
        part.data = nn_out_pixel(out, y, x);
        part.ring_cols = run;
        part.width = run;
        kernel(one, block, in, &part, &all, scratch);
        one->pad_left -= run;
        columns -= run;
        x += run * step;
    }
}

/* The outputs of a phase without taps, as those of nn_phases_part: all are the first of them. */
static inline void nn_phases_fill(const nn_conv_geometry *one, const void *block, const nn_view *in,
                                  const nn_view *out, int32_t y, int32_t x, int32_t rows,
                                  int32_t row_step, int32_t columns, int32_t step, int32_t bytes,
                                  void *scratch, nn_conv_kernel *kernel) {
    nn_conv_geometry alone = *one;
    const int8_t *first = nn_out_pixel(out, y, x);
    nn_phases_part(&alone, block, in, out, y, x, 1, row_step, 1, step, scratch, kernel);
    for (int32_t row = 0; row < rows; row++) {
        for (int32_t column = row == 0; column < columns; column++) {
            __builtin_memcpy(nn_out_pixel(out, y + row * row_step, x + column * step), first,
                             (size_t)bytes);
        }
    }
}

/* Rows of one phase go together where the output is no ring of rows. `bytes`: of a pixel's
 * channels, of which phases without taps are filled; 0: they are computed. `only`: no others than
 * these, and all phases of a row have equally many columns of taps. */
static inline void nn_phases_walk_of(int32_t bytes, int only, const nn_conv_geometry *geometry,
                                     const void *constants, const nn_view *in, const nn_view *out,
                                     const nn_window *window, void *scratch,
                                     nn_conv_kernel *kernel) {
    const nn_conv_geometry *g = geometry;
    const int32_t *offsets = (const int32_t *)constants;
    const int is_ring = out->ring_rows < out->height;
    const int32_t last = is_ring ? window->y1 : nn_min(window->y1, window->y0 + g->stride_h);
    nn_conv_geometry one = *geometry;
    nn_view none = *in; /* what a phase without taps meets: nothing but padding */
    none.height = 0;
    none.width = 0;
    none.ring_rows = 1;
    none.ring_cols = 1;
    one.stride_h = 1;
    one.stride_w = 1;
    one.groups = 1;
    for (int32_t y = window->y0; y < last; y++) {
        const int32_t bottom = y + g->pad_top, row = bottom % g->stride_h;
        const int32_t above = nn_phase_taps(g->kernel_h, g->stride_h, row) - 1;
        const int32_t rows = is_ring ? 1 : (window->y1 - y + g->stride_h - 1) / g->stride_h;
        one.kernel_h = above + 1;
        one.pad_top = above - bottom / g->stride_h;
        for (int32_t x = window->x0; x < nn_min(window->x1, window->x0 + g->stride_w); x++) {
            const int32_t right = x + g->pad_left, column = right % g->stride_w;
            const int32_t offset = offsets[row * g->stride_w + column] & (bytes > 0 ? ~1 : ~0);
            const int has_taps = row < g->kernel_h && column < g->kernel_w;
            if (only && has_taps) {
                continue;
            }
            one.kernel_w = nn_phase_taps(g->kernel_w, g->stride_w, only ? 0 : column);
            one.pad_left = one.kernel_w - 1 - right / g->stride_w;
            const int32_t columns = (window->x1 - x + g->stride_w - 1) / g->stride_w;
            const void *block = (const int8_t *)constants + offset;
            if (bytes > 0 && !has_taps) {
                nn_phases_fill(&one, block, &none, out, y, x, rows, g->stride_h, columns,
                               g->stride_w, bytes, scratch, kernel);
            } else {
                nn_phases_part(&one, block, has_taps ? in : &none, out, y, x, rows, g->stride_h,
                               columns, g->stride_w, scratch, kernel);
            }
        }
    }
}

static inline void nn_phases_walk(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch, nn_conv_kernel *kernel) {
    nn_phases_walk_of(0, 0, geometry, constants, in, out, window, scratch, kernel);
}

/* Bytes of scratch: the most that a phase needs. */
static inline int32_t nn_phases_scratch(const nn_conv_geometry *geometry, const nn_view *in,
                                        const nn_view *out, nn_conv_scratch *scratch) {
    nn_conv_geometry one = *geometry;
    nn_view row = *out;
    int32_t most = 0;
    row.width = (out->width + geometry->stride_w - 1) / geometry->stride_w;
    one.kernel_h = nn_phase_taps(geometry->kernel_h, geometry->stride_h, 0);
    one.stride_w = 1;
    for (int32_t phase = 0; phase < geometry->stride_w; phase++) {
        one.kernel_w = nn_phase_taps(geometry->kernel_w, geometry->stride_w, phase);
        most = nn_max(most, scratch(&one, in, &row));
    }
    return most;
}

#endif
