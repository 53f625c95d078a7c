/* QUANTIZE from float32 to int16_t. */
#include "nn_float_convert.h"

void nn_quantize_f32_s16(const void *constants, const nn_view *in, const nn_view *out,
                         const nn_window *window) {
    NN_FROM_FLOATS(int16_t, -32768, 32767)
}
