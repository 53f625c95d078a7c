/* QUANTIZE and CAST from int16_t to int8_t. */
#include "nn_convert.h"

void nn_convert_s16_s8(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    NN_CONVERT(int16_t, int8_t)
}
