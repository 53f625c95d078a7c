/* RESIZE_BILINEAR of float32. */
#include "nn_float_resize.h"

static inline float as_it_is(float stored) {
    return stored;
}

void nn_resize_bilinear_f32(const nn_resize_geometry *geometry, const nn_view *in,
                            const nn_view *out, const nn_window *window) {
    NN_FLOAT_BILINEAR(float, as_it_is, 0.0F, mixed)
}
