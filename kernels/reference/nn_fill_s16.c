/* Fills a tensor of int16 with one value, before a PAD's input is copied into it. */
#include "nn_wide.h"

void nn_fill_s16(const void *constants, int8_t *out, int32_t bytes) {
    const int16_t value = (int16_t)((const nn_pad_constants *)constants)->value;
    int16_t *element = (int16_t *)(void *)out;
    for (int32_t i = 0; i < bytes / 2; i++) {
        element[i] = value;
    }
}
