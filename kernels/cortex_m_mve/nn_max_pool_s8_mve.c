/* MAX_POOL_2D, Helium: sixteen channels at a time. What lies outside the tensor does not count. */
#include "nn_mve.h"

/* The largest of `rows` by `columns` elements from (y, x) on, of 16 channels. */
static inline int8x16_t largest(const nn_view *in, int32_t y, int32_t rows, int32_t x,
                                int32_t columns, int32_t channel, mve_pred16_t channels) {
    int8x16_t found = vdupq_n_s8(-128);
    for (int32_t i = 0; i < rows; i++) {
        const int8_t *row = nn_row(in, y + i) + channel;
        for (int32_t j = 0, run; j < columns; j += run) {
            const int8_t *value = row + nn_column(in, x + j) * in->pixel_stride;
            run = nn_run(in, x + j, columns - j);
            for (int32_t k = 0; k < run; k++, value += in->pixel_stride) {
                found = vmaxq_s8(found, vldrbq_z_s8(value, channels));
            }
        }
    }
    return found;
}

void nn_max_pool_s8_mve(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_pool_constants *constant = (const nn_pool_constants *)constants;
    const int8x16_t low = vdupq_n_s8((int8_t)constant->clamp_min);
    const int8x16_t high = vdupq_n_s8((int8_t)constant->clamp_max);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        int8_t *const out_row = nn_row(out, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            int8_t *result = out_row + nn_column(out, x) * out->pixel_stride;
            for (int32_t c = 0; c < out->channels; c += 16) {
                const mve_pred16_t channels = vctp8q((uint32_t)(out->channels - c));
                const int8x16_t found =
                    largest(in, top + rows.first, rows.end - rows.first, left + columns.first,
                            columns.end - columns.first, c, channels);
                vstrbq_p_s8(result + c, vminq_s8(vmaxq_s8(found, low), high), channels);
            }
        }
    }
}
