/* CAST of int32_t to float32. */
#include "nn_float_convert.h"

void nn_cast_s32_f32(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window) {
    NN_TO_FLOATS(int32_t)
}
