/* AVERAGE_POOL_2D after a PAD, Helium: what lies outside the tensor counts as elements of one
 * value. The average pooling without a PAD computes the pixels whose windows lie in the tensor. */
#include "nn_cortex_m_mve.h"
#include "nn_mve_average.h"

typedef struct {
    nn_filled_pool_constants filled;
    nn_mve_division division;
} pooling;

/* Sums of eight channels, `some` of them, from c on. */
static inline int16x8_t sum_8(const nn_mve_grid *g, int32_t parts, int32_t c, int16x8_t sum,
                              mve_pred16_t some) {
#pragma GCC unroll 1
    for (; parts > 0; parts--, g++) {
        const int8_t *row = g->data + c;
        for (int32_t rows = g->rows; rows > 0; rows--, row += g->row_step) {
            const int8_t *from = row;
#pragma GCC unroll 1
            for (int32_t i = g->columns; i > 0; i--, from += g->step) {
                sum = vaddq_s16(sum, vldrbq_z_s16(from, some));
            }
        }
    }
    return sum;
}

/* Sums of sixteen channels from c on. */
static inline void sum_16(const nn_mve_grid *g, int32_t parts, int32_t c, int16x8_t start,
                          int16x8_t sums[2]) {
    int16x8_t first = start, second = start;
#pragma GCC unroll 1
    for (; parts > 0; parts--, g++) {
        const int8_t *row = g->data + c;
        for (int32_t rows = g->rows; rows > 0; rows--, row += g->row_step) {
            const int8_t *from = row;
#pragma GCC unroll 1
            for (int32_t i = g->columns; i > 0; i--, from += g->step) {
                first = vaddq_s16(first, vldrbq_s16(from));
                second = vaddq_s16(second, vldrbq_s16(from + 8));
            }
        }
    }
    sums[0] = first;
    sums[1] = second;
}

/* All channels of a pixel: sixteen at a time, the last ones once more where they are no multiple,
 * or eight where there are fewer. */
static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const pooling *p = (const pooling *)(const void *)constants;
    const int32_t outside = p->filled.elements - area->rows * area->columns;
    const int16x8_t start = vdupq_n_s16((int16_t)(outside * p->filled.value));
    const int32_t channels = area->in->channels;
    nn_mve_grid grids[NN_MVE_GRIDS];
    const int32_t parts = nn_mve_grids(area, grids);
    if (channels < 16) {
        for (int32_t c = 0; c < channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(channels - c));
            const int16x8_t sum = sum_8(grids, parts, c, start, some);
            vstrbq_p_s16(out + c, nn_mve_divide(sum, &p->division), some);
        }
        return;
    }
    for (int32_t c = 0; c < channels; c += 16) {
        const int32_t place = nn_min(c, channels - 16);
        int16x8_t sums[2];
        sum_16(grids, parts, place, start, sums);
        vstrbq_s16(out + place, nn_mve_divide(sums[0], &p->division));
        vstrbq_s16(out + place + 8, nn_mve_divide(sums[1], &p->division));
    }
}

static NN_NOINLINE void average_borders(const nn_pool_geometry *geometry, const pooling *p,
                                        const nn_view *in, const nn_view *out,
                                        const nn_window *window) {
    nn_for_areas(compute, geometry, p, in, out, window);
}

/* Output [first, end) of [low, high) have their windows in the `size` elements of the tensor. */
static inline nn_taps find_inside(int32_t low, int32_t high, int32_t size, int32_t kernel,
                                  int32_t stride, int32_t pad) {
    const int32_t last = size + pad - kernel; /* the last window begins here at most */
    nn_taps inside;
    inside.first = nn_clamp((pad + stride - 1) / stride, low, high);
    inside.end = last < 0 ? inside.first : nn_clamp(last / stride + 1, inside.first, high);
    return inside;
}

void nn_avg_pool_filled_s8_mve(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)constants;
    const pooling p = {*filled, nn_mve_divide_by(filled->elements, &filled->limits)};
    const nn_taps rows =
        find_inside(window->y0, window->y1, in->height, g->kernel_h, g->stride_h, g->pad_top);
    const nn_taps columns =
        find_inside(window->x0, window->x1, in->width, g->kernel_w, g->stride_w, g->pad_left);
    /* Row by row: a row of the output may lie over the input's rows that it is the last to need. */
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int is_inside = y >= rows.first && y < rows.end;
        const int32_t first = is_inside ? columns.first : window->x1;
        const int32_t end = is_inside ? columns.end : window->x1;
        const nn_window left = {y, y + 1, window->x0, first}, right = {y, y + 1, end, window->x1};
        const nn_window middle = {y, y + 1, first, end};
        average_borders(g, &p, in, out, &left);
        if (first < end) {
            nn_avg_pool_s8_mve(g, constants, in, out, &middle);
        }
        average_borders(g, &p, in, out, &right);
    }
}
