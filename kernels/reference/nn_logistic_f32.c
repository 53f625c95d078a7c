/* LOGISTIC of float32. */
#include "nn_float.h"
#include "nn_real.h"

/* The two ends are LiteRT's. */
static inline float sigmoid(const void *constants, float x) {
    (void)constants;
    if (x > 16.619047164916992188F) {
        return 1.0F;
    }
    if (x < -9.0F) {
        return nn_real_exp(x);
    }
    return 1.0F / (1.0F + nn_real_exp(-x));
}

void nn_logistic_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(sigmoid, NULL, in, out, window);
}
