/* ADD, SUB, MUL, DIV, MAXIMUM and MINIMUM of int32 numbers without scales, with broadcasting. */
#include "nn_elements.h"

static inline int32_t result_of(int32_t operation, int32_t a, int32_t b) {
    switch (operation) {
    case NN_UNSCALED_ADD:
        return nn_wrapping_add(a, b);
    case NN_UNSCALED_SUB:
        return (int32_t)((uint32_t)a - (uint32_t)b);
    case NN_UNSCALED_MUL:
        return (int32_t)((uint32_t)a * (uint32_t)b);
    case NN_UNSCALED_DIV:
        return b == -1 ? (int32_t)(0U - (uint32_t)a) : a / b;
    case NN_UNSCALED_MAXIMUM:
        return nn_max(a, b);
    default:
        return nn_min(a, b);
    }
}

void nn_unscaled_s32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window) {
    const nn_unscaled_constants c = *(const nn_unscaled_constants *)constants;
    NN_PAIRS(int32_t, int32_t, int32_t, result_of(c.operation, a, b))
}
