/* SOFTMAX and L2_NORMALIZATION of float32 over the channels of each pixel. */
#include "nn_float.h"
#include "nn_real.h"

/* The channels of one pixel. */
typedef void of_pixel(const void *constants, const float *in, int32_t count, float *out);

static inline __attribute__((always_inline)) void for_pixels(of_pixel *compute,
                                                             const void *constants,
                                                             const nn_view *in, const nn_view *out,
                                                             const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            compute(constants, nn_float_in(in, y, x), out->channels, nn_float_out(out, y, x));
        }
    }
}

static float greatest(const float *in, int32_t count) {
    float most = -NN_FLOAT_MAX;
    for (int32_t i = 0; i < count; i++) {
        most = most < in[i] ? in[i] : most;
        NN_ONE_BY_ONE();
    }
    return most;
}

static inline void softmax(const void *constants, const float *in, int32_t count, float *out) {
    const float beta = ((const nn_float_factor *)constants)->factor, most = greatest(in, count);
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

static inline void normalise(const void *constants, const float *in, int32_t count, float *out) {
    float sum = 0.0F;
    (void)constants;
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

void nn_softmax_f32(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window) {
    for_pixels(softmax, constants, in, out, window);
}

void nn_l2_normalization_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    for_pixels(normalise, NULL, in, out, window);
}
