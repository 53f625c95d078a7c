/* ELU of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float elu(const void *constants, float x) {
    (void)constants;
    return nn_real_expm1(x);
}

void nn_elu_f32(const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_floats(elu, NULL, in, out, window);
}
