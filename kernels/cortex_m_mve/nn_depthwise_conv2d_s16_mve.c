/* DEPTHWISE_CONV_2D on int16, depth multiplier 1, Helium: eight channels at a time over the taps
 * that meet the input. Constants as nn_depthwise_conv2d_s16's. 511 taps at most: sums fit int32. */
#include "nn_mve_wide.h"
#include "nn_wide_patch.h"

/* The sums of `count` (at most 8) channels from c on: of the even ones, then of the odd ones. */
static inline void sum_taps(int32_t sums[8], const nn_wide_patch *p, const int8_t *weights,
                            int32_t c, int32_t count) {
    const int32_t channels = p->in->channels;
    const mve_pred16_t some = vctp16q((uint32_t)count);
    int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
    int32_t y = p->y;
    for (int32_t ky = p->rows.first; ky < p->rows.end; ky++, y += p->dilation_h) {
        const int8_t *w = weights + (ky * p->kernel_w + p->columns.first) * channels + c;
        const int8_t *row = nn_row(p->in, y) + 2 * c;
        int32_t x = p->x;
        for (int32_t kx = p->columns.first; kx < p->columns.end; kx++, w += channels) {
            const int8_t *place = row + nn_column(p->in, x) * p->in->pixel_stride;
            const int16x8_t values = vldrhq_z_s16((const int16_t *)(const void *)place, some);
            const int16x8_t factors = vldrbq_z_s16(w, some);
            even = vaddq_s32(even, vmullbq_int_s16(values, factors));
            odd = vaddq_s32(odd, vmulltq_int_s16(values, factors));
            x += p->dilation_w;
        }
    }
    vst1q_s32(sums, even);
    vst1q_s32(sums + 4, odd);
}

void nn_depthwise_conv2d_s16_mve(const nn_conv_geometry *geometry, const void *constants,
                                 const nn_view *in, const nn_view *out, const nn_window *window,
                                 void *scratch) {
    const nn_conv_geometry *g = geometry;
    const nn_wide_block block = nn_wide_open(constants, out->channels, sizeof(nn_wide_channel));
    const nn_wide_channel *channels = (const nn_wide_channel *)block.channels;
    nn_wide_patch p = nn_wide_patches(g, in);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        nn_wide_at_row(&p, g, y);
        for (int32_t x = window->x0; x < window->x1; x++) {
            int16_t *result = nn_wide_out(out, y, x);
            nn_wide_at_column(&p, g, x);
            for (int32_t c = 0; c < out->channels; c += 8) {
                const int32_t count = nn_min(8, out->channels - c);
                int32_t sums[8];
                sum_taps(sums, &p, block.weights, c, count);
                for (int32_t i = 0; i < count; i++) {
                    const int32_t sum = sums[i / 2 + i % 2 * 4];
                    result[c + i] = nn_wide_output(sum, channels + c + i, &block.common);
                }
            }
        }
    }
}
