/* FULLY_CONNECTED, Helium: dot products of 16 bytes, six outputs at a time.
 *
 * constants: nn_mve_head; for each four outputs their multipliers, their shifts and their lows (as
 * in nn_dense_channel; int32[12]); then, with n = ceil(inputs / 16) and weights padded to 16 n
 * bytes an output, tiles of six outputs: int32[6], their biases, then n times 16 weights of each;
 *   the outputs left: int32, the bias, then 16 n weights; at least 128 bytes in all, because
 * factors are loaded for eight outputs at a time. Modes: NN_MVE_ODD if every shift is -2 or less:
 * the half that rounds is then at least 2^32, and the lower half of the 64-bit product only has a
 * say by its carry; NN_MVE_PLAIN if all lows are 0 as well, and there is none; else NN_MVE_GENERAL.
 */
#include "nn_conv.h"
#include "nn_mve_dense.h"

#define BLOCK 48 /* outputs; a multiple of 6 and of 8 */

/* round(sum * (multiplier + low * 2^-16) * 2^(shift - 31)), halves away from zero, of four sums. */
static inline int32x4_t requantise(int32x4_t sums, const int32_t *factors, int mode) {
    const uint32x4_t size = vreinterpretq_u32_s32(vabsq_s32(sums)); /* 2^31 too */
    const uint32x4_t multiplier = vreinterpretq_u32_s32(vldrwq_s32(factors));
    const int32x4_t shift = vaddq_n_s32(vldrwq_s32(factors + 4), 1);
    uint32x4_t high = vmulhq_u32(size, multiplier);
    if (mode == NN_MVE_ODD) {
        const uint32x4_t more = vmulhq_u32(size, vreinterpretq_u32_s32(vldrwq_s32(factors + 8)));
        const uint32x4_t low = vaddq_u32(vmulq_u32(size, multiplier), more);
        high = vaddq_m_n_u32(high, high, 1, vcmphiq_u32(more, low));
    }
    const int32x4_t scaled = vreinterpretq_s32_u32(vrshlq_u32(high, shift));
    return vnegq_m_s32(scaled, scaled, vcmpltq_n_s32(sums, 0));
}

/* Puts out `count` sums, which include the biases. */
static inline void finish(const nn_conv_constants *common, const int32_t *factors,
                          const int32_t *sums, int8_t *out, int32_t count, int mode) {
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int16x8_t low = vdupq_n_s16((int16_t)common->clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)common->clamp_max);
    const uint16x8_t offsets = vldrhq_u16(order);
    const int32_t zero_point = common->output_zero_point;
    for (; count > 0; count -= 8, out += 8, sums += 8, factors += 24) {
        const int32x4_t first = requantise(vldrwq_s32(sums), factors, mode);
        const int32x4_t second = requantise(vldrwq_s32(sums + 4), factors + 12, mode);
        const int16x8_t result = nn_mve_narrow(first, second, zero_point, low, high);
        const int16_t left = (int16_t)count;
        vstrbq_scatter_offset_p_s16(out, offsets, result,
                                    vcmpltq_n_s16(vreinterpretq_s16_u16(offsets), left));
    }
}

/* As finish, for any multiplier and shift. */
static NN_NOINLINE void finish_any(const nn_conv_constants *common, const int32_t *factors,
                                   const int32_t *sums, int8_t *out, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t *four = factors + i / 4 * 12 + i % 4;
        const nn_dense_channel channel = {0, four[0], four[4], (int32_t)((uint32_t)four[8] >> 16)};
        out[i] = nn_dense_output(sums[i], &channel, common);
    }
}

void nn_fully_connected_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    const nn_mve_head *head = (const nn_mve_head *)constants;
    const int32_t inputs = in->channels, outputs = out->channels;
    const int32_t *const factors = (const int32_t *)(const void *)(head + 1);
    const int8_t *const weights = (const int8_t *)(factors + ((outputs + 3) & ~3) * 3);
    int32_t sums[BLOCK];
    nn_mve_dense dots = {NULL, NULL, (inputs + 15) & ~15, sums, inputs, 0, 0};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            int8_t *result = nn_out_pixel(out, y, x);
            dots.x = nn_pixel(in, y, x);
            dots.weights = weights;
            for (int32_t c = 0; c < outputs; c += BLOCK) {
                const int32_t count = nn_min(BLOCK, outputs - c);
                dots.tiles = count / 6;
                dots.rest = count - 6 * dots.tiles;
                dots.weights = nn_mve_dense_dots(&dots);
                if (head->mode == NN_MVE_PLAIN) {
                    finish(&head->common, factors + 3 * c, sums, result + c, count, NN_MVE_PLAIN);
                } else if (head->mode == NN_MVE_ODD) {
                    finish(&head->common, factors + 3 * c, sums, result + c, count, NN_MVE_ODD);
                } else {
                    finish_any(&head->common, factors + 3 * c, sums, result + c, count);
                }
            }
        }
    }
}
