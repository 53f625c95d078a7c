/* FULLY_CONNECTED: the inputs widened once, then four outputs at a time.
 *
 * Packed constants: nn_dsp_constants; nn_dense_channel of each output; for every four outputs and
 * four inputs the two words (see nn_dsp_matmul.h) of the first two outputs, then of the others.
 */
#include "nn_dsp_dense.h"

int32_t nn_fully_connected_s8_dsp_scratch_bytes(const nn_view *in, const nn_view *out) {
    (void)out;
    return 8 * ((in->channels + 3) / 4);
}

/* nn_dense_output without the product's lower half and the multiplier's low part. These amount to
 * less than 2^32, one in `high`: only if that made a difference is all of it computed. */
static inline int8_t output(int32_t sum, const nn_dense_channel *channel,
                            const nn_conv_constants *common) {
    const int32_t total = nn_wrapping_add(sum, channel->bias), sign = total >> 31;
    const int32_t size = nn_wrapping_add(total ^ sign, -sign), down = -1 - channel->shift;
    if (down >= 1 && down <= 30 && (size | channel->multiplier) >= 0) {
        const int32_t high = nn_smmla(size, channel->multiplier, 1 << (down - 1));
        const int32_t scaled = high >> down;
        if (scaled == (high + 1) >> down) {
            return (int8_t)nn_clamp((scaled ^ sign) - sign + common->output_zero_point,
                                    common->clamp_min, common->clamp_max);
        }
    }
    return nn_dense_output(sum, channel, common);
}

/* One pixel's outputs from its widened inputs. */
static void compute(const nn_dsp_constants *constants, const uint32_t *x, int32_t quads,
                    int8_t *out, int32_t outputs) {
    const nn_dense_channel *channel = (const nn_dense_channel *)(const void *)(constants + 1);
    const uint32_t *w = (const uint32_t *)(const void *)(channel + outputs);
    const nn_conv_constants common = constants->common;
    for (int32_t c = 0; c < outputs; c += 4, w += 4 * quads) {
        const int32_t count = nn_min(4, outputs - c);
        int32_t sums[4];
        if (c >= constants->general_first && c < constants->general_end) {
            nn_dsp_sum_general(x, w, quads, sums);
        } else {
            nn_dsp_sum_pieces(x, w, quads, sums);
        }
        for (int32_t i = 0; i < count; i++) {
            out[c + i] = output(sums[i], channel + c + i, &common);
        }
    }
}

void nn_fully_connected_s8_dsp(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    const int32_t quads = (in->channels + 3) / 4;
    uint32_t *widened = (uint32_t *)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            (void)nn_dsp_widen1(widened, 1, nn_pixel(in, y, x), in->channels);
            compute((const nn_dsp_constants *)constants, widened, quads, nn_out_pixel(out, y, x),
                    out->channels);
        }
    }
}
