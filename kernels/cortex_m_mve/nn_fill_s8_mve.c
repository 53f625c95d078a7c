/* Fills a tensor with one value, Helium. */
#include "nn_mve.h"

void nn_fill_s8_mve(const void *constants, int8_t *out, int32_t bytes) {
    const int8_t value = (int8_t)((const nn_pad_constants *)constants)->value;
    const int8x16_t values = vdupq_n_s8(value);
#pragma GCC unroll 4
    for (; bytes >= 16; bytes -= 16, out += 16) {
        vstrbq_s8(out, values);
    }
    vstrbq_p_s8(out, values, vctp8q((uint32_t)bytes));
}
