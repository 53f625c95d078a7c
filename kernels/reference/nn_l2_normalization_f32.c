/* L2_NORMALIZATION of float32 over the channels of each pixel. */
#include "nn_float.h"

static void normalise(const float *in, int32_t count, float *out) {
    float sum = 0.0F;
    for (int32_t i = 0; i < count; i++) {
        sum += in[i] * in[i];
        NN_ONE_BY_ONE();
    }
    sum = nn_float_root(sum);
    sum = sum < 1e-6F ? 1e-6F : sum;
    for (int32_t i = 0; i < count; i++) {
        out[i] = in[i] / sum;
        NN_ONE_BY_ONE();
    }
}

void nn_l2_normalization_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            normalise(nn_float_in(in, y, x), out->channels, nn_float_out(out, y, x));
        }
    }
}
