/* RESIZE_BILINEAR of networks that were of uint8: in float32, halves rounded up. */
#include "nn_float_resize.h"
#include "nn_uint8.h"

static inline float of_byte(int8_t stored) {
    return (float)(stored + 128);
}

void nn_resize_bilinear_real_s8(const nn_resize_geometry *geometry, const nn_view *in,
                                const nn_view *out, const nn_window *window) {
    NN_FLOAT_BILINEAR(int8_t, of_byte, 0.5F, (int8_t)((int32_t)mixed - 128))
}
