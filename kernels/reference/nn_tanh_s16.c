/* TANH on int16, as 2 * sigmoid(2x) - 1: the sigmoid's table in steps of 1 / 48. */
#include "nn_elements.h"

static inline int16_t tangent(const nn_sigmoid_constants *c, int32_t value) {
    const int32_t half = c->right_shift > 0 ? 1 << (c->right_shift - 1) : 0;
    const int32_t place = (value * c->multiplier + half) >> c->right_shift;
    const uint32_t size = place < 0 ? 0U - (uint32_t)place : (uint32_t)place;
    const uint32_t index = size >> 8, part = size & 255;
    int32_t result = 0xFFFF << 8;
    if (index < 255) {
        const uint32_t low = c->table[index], high = c->table[index + 1];
        result = (int32_t)((low << 8) + part * (high - low));
    }
    result = place >= 0 ? result - (1 << 23) + (1 << 7) : (1 << 23) - result + (1 << 7) - 1;
    return (int16_t)(result >> 8);
}

void nn_tanh_s16(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window) {
    const nn_sigmoid_constants *c = (const nn_sigmoid_constants *)constants;
    NN_ELEMENTS(int16_t, int16_t, tangent(c, value))
}
