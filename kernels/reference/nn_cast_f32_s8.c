/* CAST of float32 to int8_t or to truth values. */
#include "nn_float_convert.h"

void nn_cast_f32_s8(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window) {
    if (((const nn_float_flag *)constants)->set) {
        NN_OF_FLOATS(int8_t, value[i] != 0.0F)
    } else {
        NN_OF_FLOATS(int8_t, nn_float_cut(value[i], INT8_MIN, INT8_MAX))
    }
}
