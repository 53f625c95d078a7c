/* SOFTMAX of float32 over the channels of each pixel. */
#include "nn_float_reduce.h"
#include "nn_real.h"

static void softmax(float beta, const float *in, int32_t count, float *out) {
    const float most = nn_float_greatest(in, count);
    float sum = 0.0F;
    for (int32_t i = 0; i < count; i++) {
        out[i] = nn_real_exp((in[i] - most) * beta);
        sum += out[i];
    }
    for (int32_t i = 0; i < count; i++) {
        out[i] = out[i] / sum;
        NN_ONE_BY_ONE();
    }
}

void nn_softmax_f32(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window) {
    const float beta = ((const nn_float_factor *)constants)->factor;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            softmax(beta, nn_float_in(in, y, x), out->channels, nn_float_out(out, y, x));
        }
    }
}
