/* Fills a tensor of float32 with one value, before a PAD's input is copied into it. */
#include "nn_arith.h"
#include "nn_f32.h"

void nn_fill_f32(const void *constants, int8_t *out, int32_t bytes) {
    const int32_t value = ((const nn_pad_constants *)constants)->value; /* the float's bits */
    int32_t *element = (int32_t *)(void *)out;
    for (int32_t i = 0; i < bytes / 4; i++) {
        element[i] = value;
    }
}
