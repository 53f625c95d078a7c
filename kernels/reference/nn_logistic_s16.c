/* LOGISTIC on int16: a table of half the curve, interpolated in steps of 1 / 24. */
#include "nn_elements.h"

static inline int16_t sigmoid(const nn_sigmoid_constants *c, int32_t value) {
    const int32_t half = c->right_shift > 0 ? 1 << (c->right_shift - 1) : 0;
    const int32_t place = (value * c->multiplier + half) >> c->right_shift;
    const uint32_t size = place < 0 ? 0U - (uint32_t)place : (uint32_t)place;
    const uint32_t index = size >> 9, part = size & 511;
    uint32_t result = 0x7FFFU << 10;
    if (index < 255) {
        const uint32_t low = c->table[index], high = c->table[index + 1];
        result = (low << 9) + part * (high - low);
    }
    result = place >= 0 ? result + (1U << 9) : (1U << 25) - result + (1U << 9) - 1;
    return (int16_t)(result >> 10);
}

void nn_logistic_s16(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window) {
    const nn_sigmoid_constants *c = (const nn_sigmoid_constants *)constants;
    NN_ELEMENTS(int16_t, int16_t, sigmoid(c, value))
}
