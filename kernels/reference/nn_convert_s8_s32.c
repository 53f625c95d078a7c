/* QUANTIZE and CAST from int8_t to int32_t. */
#include "nn_convert.h"

void nn_convert_s8_s32(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    NN_CONVERT(int8_t, int32_t)
}
