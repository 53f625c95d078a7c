/* AVERAGE_POOL_2D, Helium: eight channels at a time. What lies outside the tensor does not count.
 */
#include "nn_mve.h"

#define MAX_SMALL 255    /* elements that an int16 sum holds */
#define MAX_INVERSE 4096 /* elements that can be divided by as below */

/* The window of one output, and four channels of it. */
typedef struct {
    const nn_view *in;
    int32_t y, rows, x, columns, channel;
} pool_window;

/* Adds up the window's elements of four channels. */
static inline int32x4_t sum_four(const pool_window *w, mve_pred16_t channels) {
    int32x4_t sum = vdupq_n_s32(0);
    for (int32_t i = 0; i < w->rows; i++) {
        const int8_t *row = nn_row(w->in, w->y + i) + w->channel;
        for (int32_t j = 0, run; j < w->columns; j += run) {
            const int8_t *value = row + nn_column(w->in, w->x + j) * w->in->pixel_stride;
            run = nn_run(w->in, w->x + j, w->columns - j);
            for (int32_t k = 0; k < run; k++, value += w->in->pixel_stride) {
                sum = vaddq_s32(sum, vldrbq_z_s32(value, channels));
            }
        }
    }
    return sum;
}

/* As sum_four, of eight channels; for up to MAX_SMALL elements. */
static inline int16x8_t sum_eight(const pool_window *w, mve_pred16_t channels) {
    int16x8_t sum = vdupq_n_s16(0);
    for (int32_t i = 0; i < w->rows; i++) {
        const int8_t *row = nn_row(w->in, w->y + i) + w->channel;
        for (int32_t j = 0, run; j < w->columns; j += run) {
            const int8_t *value = row + nn_column(w->in, w->x + j) * w->in->pixel_stride;
            run = nn_run(w->in, w->x + j, w->columns - j);
            for (int32_t k = 0; k < run; k++, value += w->in->pixel_stride) {
                sum = vaddq_s16(sum, vldrbq_z_s16(value, channels));
            }
        }
    }
    return sum;
}

/* sum / count, halves away from zero. `inverse` is 2^32 / count rounded up: with |sum| <= 128 count
 * the error |sum| * (inverse * count - 2^32) stays below 2^32 up to a count of 5781. */
static inline int32x4_t divide(int32x4_t sum, int32_t count, uint32_t inverse) {
    const uint32x4_t size = vaddq_n_u32(vreinterpretq_u32_s32(vabsq_s32(sum)), (uint32_t)count / 2);
    const int32x4_t mean =
        vreinterpretq_s32_u32(count > 1 ? vmulhq_u32(size, vdupq_n_u32(inverse)) : size);
    return vnegq_m_s32(mean, mean, vcmpltq_n_s32(sum, 0));
}

static void average_small(const pool_window *window, const nn_pool_constants *constant,
                          int8_t *out) {
    pool_window w = *window;
    const int32_t count = w.rows * w.columns;
    const uint32_t inverse = 0xFFFFFFFFU / (uint32_t)count + 1;
    const int16x8_t low = vdupq_n_s16((int16_t)constant->clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)constant->clamp_max);
    for (; w.channel < w.in->channels; w.channel += 8, out += 8) {
        const mve_pred16_t channels = vctp16q((uint32_t)(w.in->channels - w.channel));
        const int16x8_t sums = sum_eight(&w, channels);
        const int32x4_t even = divide(vmovlbq_s16(sums), count, inverse);
        const int32x4_t odd = divide(vmovltq_s16(sums), count, inverse);
        vstrbq_p_s16(out, nn_mve_narrow(even, odd, 0, low, high), channels);
    }
}

static NN_NOINLINE void average_large(const pool_window *window, const nn_pool_constants *constant,
                                      int8_t *out) {
    pool_window w = *window;
    const int32_t count = w.rows * w.columns;
    const uint32_t inverse = 0xFFFFFFFFU / (uint32_t)count + 1;
    const int32x4_t low = vdupq_n_s32(constant->clamp_min), high = vdupq_n_s32(constant->clamp_max);
    for (; w.channel < w.in->channels; w.channel += 4, out += 4) {
        const mve_pred16_t channels = vctp32q((uint32_t)(w.in->channels - w.channel));
        int32x4_t sums = sum_four(&w, channels);
        if (count <= MAX_INVERSE) {
            sums = divide(sums, count, inverse);
        } else {
            for (int32_t i = 0; i < 4; i++) {
                const int32_t sum = sums[i], half = sum > 0 ? count / 2 : -(count / 2);
                sums[i] = (sum + half) / count;
            }
        }
        vstrbq_p_s32(out, vminq_s32(vmaxq_s32(sums, low), high), channels);
    }
}

void nn_avg_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        int8_t *const out_row = nn_row(out, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const pool_window w = {in,
                                   top + rows.first,
                                   rows.end - rows.first,
                                   left + columns.first,
                                   columns.end - columns.first,
                                   0};
            (w.rows * w.columns <= MAX_SMALL ? average_small : average_large)(
                &w, (const nn_pool_constants *)constants,
                out_row + nn_column(out, x) * out->pixel_stride);
        }
    }
}
