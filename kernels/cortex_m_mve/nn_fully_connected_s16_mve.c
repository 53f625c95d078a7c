/* FULLY_CONNECTED on int16, Helium: four outputs at a time; constants as nn_fully_connected_s16's.
 */
#include "nn_mve_wide.h"

static inline uint32x4_t load_each(const int32_t *first, uint32x4_t offsets) {
    return vreinterpretq_u32_s32(vldrwq_gather_offset_s32(first, offsets));
}

/* Puts out four sums as nn_wide_dense_output does where both its estimates of the quotient agree;
 * else returns 0. */
static inline int put_alike(int16_t *out, int32x4_t sums, const nn_wide_dense_channel *channel,
                            const nn_wide_constants *common) {
    const uint32x4_t each = vmulq_n_u32(vidupq_n_u32(0, 1), sizeof(nn_wide_dense_channel));
    const int32x4_t bias = vreinterpretq_s32_u32(load_each(&channel->bias_low, each));
    const int32x4_t total = vaddq_s32(sums, bias);
    const uint32x4_t size = vreinterpretq_u32_s32(vabsq_s32(total));
    const uint32x4_t factor = vsliq_n_u32(vshrq_n_u32(load_each(&channel->factor_low, each), 21),
                                          load_each(&channel->factor_high, each), 11);
    const uint32x4_t right = vsubq_n_u32(load_each(&channel->right_shift, each), 54);
    const int32x4_t left = vsubq_s32(vdupq_n_s32(-1), vreinterpretq_s32_u32(right));
    /* Above the 32 bits of `low`: what lies below the quotient's last bit. */
    const uint32x4_t low = vmulq_u32(size, factor), more = vaddq_n_u32(size, 1024);
    const uint32x4_t high = vmulhq_u32(size, factor);
    const mve_pred16_t carries = vcmphiq_u32(more, vaddq_u32(low, more));
    const uint32x4_t least = vrshlq_u32(high, left);
    const uint32x4_t most = vrshlq_u32(vaddq_m_n_u32(high, high, 1, carries), left);
    /* A bias or a sum of more than 32 bits shows in the sign. */
    const int32x4_t bias_high = vreinterpretq_s32_u32(load_each(&channel->bias_high, each));
    int32x4_t apart = veorq_s32(vshrq_n_s32(bias, 31), bias_high);
    apart = vorrq_s32(apart, vreinterpretq_s32_u32(veorq_u32(least, most)));
    const int32x4_t left_out = vandq_s32(veorq_s32(sums, total), veorq_s32(bias, total));
    const int32x4_t wraps = vorrq_s32(left_out, vreinterpretq_s32_u32(size));
    if ((vcmpneq_n_s32(apart, 0) | vcmpltq_n_s32(wraps, 0) | vcmphiq_n_u32(right, 30)) != 0) {
        return 0;
    }
    int32x4_t result = vreinterpretq_s32_u32(vminq_u32(least, vdupq_n_u32(65535)));
    result = vnegq_m_s32(result, result, vcmpltq_n_s32(total, 0));
    result = vmaxq_s32(result, vdupq_n_s32(common->clamp_min));
    vstrhq_s32(out, vminq_s32(result, vdupq_n_s32(common->clamp_max)));
    return 1;
}

static void put_four(int16_t *out, const int16_t *values, int32_t inputs, const int8_t *w,
                     const nn_wide_dense_channel *channels, const nn_wide_constants *common) {
    int32_t sums[4] = {0, 0, 0, 0};
    nn_mve_wide_narrow4(sums, values, w, inputs, inputs);
    if (put_alike(out, vldrwq_s32(sums), channels, common)) {
        return;
    }
    for (int32_t i = 0; i < 4; i++) {
        out[i] = nn_wide_dense_output(sums[i], channels + i, common);
    }
}

void nn_fully_connected_s16_mve(const void *constants, const nn_view *in, const nn_view *out,
                                const nn_window *window, void *scratch) {
    const int32_t inputs = in->channels, outputs = out->channels;
    const nn_wide_block block = nn_wide_open(constants, outputs, sizeof(nn_wide_dense_channel));
    const nn_wide_dense_channel *channels = (const nn_wide_dense_channel *)block.channels;
    const int narrow = block.common.sum_bits == 32;
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int16_t *values = nn_wide_in(in, y, x);
            const int8_t *w = block.weights;
            int16_t *result = nn_wide_out(out, y, x);
            int32_t c = 0;
            for (; narrow && c + 4 <= outputs; c += 4, w += 4 * inputs) {
                put_four(result + c, values, inputs, w, channels + c, &block.common);
            }
            for (; c < outputs; c++, w += inputs) {
                const int64_t sum = narrow ? nn_mve_wide_narrow(0, values, w, inputs)
                                           : nn_mve_wide_long(0, values, w, inputs);
                result[c] = nn_wide_dense_output(sum, channels + c, &block.common);
            }
        }
    }
}
