/* QUANTIZE from float32 to int8_t. */
#include "nn_float_convert.h"

void nn_quantize_f32_s8(const void *constants, const nn_view *in, const nn_view *out,
                        const nn_window *window) {
    NN_FROM_FLOATS(int8_t, -128, 127)
}
