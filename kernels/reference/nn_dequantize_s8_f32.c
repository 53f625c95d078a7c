/* DEQUANTIZE from int8_t to float32. */
#include "nn_float_convert.h"

void nn_dequantize_s8_f32(const void *constants, const nn_view *in, const nn_view *out,
                          const nn_window *window) {
    NN_TO_FLOATS(int8_t)
}
