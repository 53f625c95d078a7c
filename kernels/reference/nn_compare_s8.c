/* EQUAL, LESS and their like, with broadcasting: a byte 0 or 1 an element. */
#include "nn_pairs.h"

static inline int8_t compare(const void *constants, int32_t a, int32_t b) {
    const nn_compare_constants *c = (const nn_compare_constants *)constants;
    const int32_t first = nn_requantise((a - c->input1_zero_point) * (1 << c->left_shift),
                                        c->input1_multiplier, c->input1_shift);
    const int32_t second = nn_requantise((b - c->input2_zero_point) * (1 << c->left_shift),
                                         c->input2_multiplier, c->input2_shift);
    return (int8_t)(c->truth >> ((first >= second) + (first > second)) & 1);
}

void nn_compare_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const nn_compare_constants c = *(const nn_compare_constants *)constants;
    nn_for_pairs(compare, &c, in1, in2, out, window);
}
