/* L2_NORMALIZATION: each element over the root of the sum of the squares of its pixel's channels.
 */
#include "nn_fixed.h"

#define OUTPUT_BITS 7 /* outputs are multiples of 2^-7 */

static void normalise(int32_t zero_point, const int8_t *in, int8_t *out, int32_t count) {
    int32_t sum = 0, multiplier, shift;
    for (int32_t i = 0; i < count; i++) {
        sum += (in[i] - zero_point) * (in[i] - zero_point);
    }
    multiplier = nn_inverse_root(sum, &shift);
    for (int32_t i = 0; i < count; i++) {
        const int32_t scaled = nn_requantise(in[i] - zero_point, multiplier, shift + OUTPUT_BITS);
        out[i] = (int8_t)nn_clamp(scaled, -128, 127);
    }
}

void nn_l2_normalization_s8(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window) {
    const nn_l2_normalization_constants *c = (const nn_l2_normalization_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            normalise(c->input_zero_point, nn_pixel(in, y, x), nn_out_pixel(out, y, x),
                      out->channels);
        }
    }
}
