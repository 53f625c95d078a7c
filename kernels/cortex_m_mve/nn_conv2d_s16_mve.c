/* CONV_2D on int16 without groups, Helium: four channels of a pixel at a time, the inputs read
 * where they are; taps that meet padding are left out. Constants as nn_conv2d_s16's. */
#include "nn_mve_wide.h"
#include "nn_wide_patch.h"

/* Sums that fit int32, of four channels. */
static inline void add_four(int64_t *sums, const int16_t *x, const int8_t *w, int32_t size,
                            int32_t count) {
    int32_t narrow[4] = {(int32_t)sums[0], (int32_t)sums[1], (int32_t)sums[2], (int32_t)sums[3]};
    nn_mve_wide_narrow4(narrow, x, w, size, count);
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = narrow[i];
    }
}

static inline void add_one(int64_t *sum, const int16_t *x, const int8_t *w, int32_t size,
                           int32_t count) {
    (void)size;
    *sum = nn_mve_wide_long(*sum, x, w, count);
}

static void compute_pixel(const nn_wide_conv *conv, const nn_wide_block *block, int32_t outputs,
                          int16_t *out) {
    const nn_wide_channel *channels = (const nn_wide_channel *)block->channels;
    const nn_wide_constants common = block->common;
    const int8_t *w = block->weights;
    int32_t c = 0;
    for (; common.sum_bits == 32 && c + 4 <= outputs; c += 4, w += 4 * conv->size) {
        int64_t sums[4] = {0, 0, 0, 0};
        nn_wide_sum_taps(add_four, sums, conv, w, 0);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = nn_wide_output(sums[i], channels + c + i, &common);
        }
    }
    for (; c < outputs; c++, w += conv->size) {
        int64_t sum = 0;
        nn_wide_sum_taps(add_one, &sum, conv, w, 0);
        out[c] = nn_wide_output(sum, channels + c, &common);
    }
}

void nn_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    nn_wide_conv conv = nn_wide_conv_of(g, in);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&conv.taps, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            nn_wide_at_column(&conv.taps, g, x);
            compute_pixel(&conv, &block, out->channels, nn_wide_out(out, y, x));
        }
    }
}
