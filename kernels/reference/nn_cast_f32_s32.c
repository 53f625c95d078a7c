/* CAST of float32 to int32_t. */
#include "nn_float_convert.h"

void nn_cast_f32_s32(const nn_view *in, const nn_view *out, const nn_window *window) {
    NN_OF_FLOATS(int32_t, nn_float_cut(value[i], INT32_MIN, INT32_MAX))
}
