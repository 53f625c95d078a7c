/* GELU of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float exact(const void *constants, float x) {
    (void)constants;
    return 0.5F * x * nn_real_erfc(x * -0.707106769F);
}

/* With tanh. */
static inline float approximate(const void *constants, float x) {
    const float cube = 0.044715F * x * x * x;
    (void)constants;
    return 0.5F * x * (1.0F + nn_real_tanh(0.797884583F * (x + cube)));
}

void nn_gelu_f32(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window) {
    if (((const nn_float_flag *)constants)->set) {
        nn_for_floats(approximate, NULL, in, out, window);
    } else {
        nn_for_floats(exact, NULL, in, out, window);
    }
}
