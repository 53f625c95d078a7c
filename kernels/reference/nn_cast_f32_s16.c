/* CAST of float32 to int16_t. */
#include "nn_float_convert.h"

void nn_cast_f32_s16(const nn_view *in, const nn_view *out, const nn_window *window) {
    NN_OF_FLOATS(int16_t, nn_float_cut(value[i], INT16_MIN, INT16_MAX))
}
