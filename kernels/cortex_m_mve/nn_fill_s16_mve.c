/* Fills a tensor of int16 with one value, Helium. */
#include "nn_mve.h"

void nn_fill_s16_mve(const void *constants, int8_t *out, int32_t bytes) {
    const int16_t value = (int16_t)((const nn_pad_constants *)constants)->value;
    const int16x8_t values = vdupq_n_s16(value);
    int16_t *elements = (int16_t *)(void *)out;
#pragma GCC unroll 4
    for (; bytes >= 16; bytes -= 16, elements += 8) {
        vstrhq_s16(elements, values);
    }
    vstrhq_p_s16(elements, values, vctp16q((uint32_t)bytes / 2));
}
