/* DIV, with broadcasting: a product with the divisor's reciprocal. A divisor of 0 gives the end of
 * the range that the dividend's sign says. */
#include "nn_fixed.h"
#include "nn_pairs.h"

/* round(value / 2^distance), halves away from zero. From 32 on it is 0, or, with `wraps`, what the
 * reference kernel gets where the distance is taken modulo 32, with the remainder as a whole. */
static inline int32_t shift_far(int32_t value, int32_t distance, int32_t wraps) {
    if (distance < 32) {
        return nn_rounding_shift(value, distance);
    }
    return wraps ? (value >> (distance & 31)) + (value >= 0) : 0;
}

static inline int8_t divide(const void *constants, int32_t a, int32_t b) {
    const nn_div_constants *c = (const nn_div_constants *)constants;
    int32_t dividend = a - c->input1_zero_point, divisor = b - c->input2_zero_point;
    int32_t zeros, room, quotient;
    if (divisor == 0) {
        quotient = dividend * 256;
        return (int8_t)nn_clamp(quotient + c->output_zero_point, c->clamp_min, c->clamp_max);
    }
    if (divisor < 0) {
        dividend = -dividend;
        divisor = -divisor;
    }
    zeros = nn_leading_zeros((uint32_t)divisor);
    room = nn_leading_zeros((uint32_t)(dividend < 0 ? ~dividend : dividend)) - 1;
    quotient = nn_high_multiply(
        (int32_t)((uint32_t)dividend << room),
        nn_one_over_one_plus((int32_t)(((uint32_t)divisor << zeros) ^ 0x80000000U)));
    quotient = shift_far(nn_high_multiply(quotient, c->output_multiplier),
                         31 - zeros + room - c->output_shift, c->wraps);
    return (int8_t)nn_clamp(nn_wrapping_add(quotient, c->output_zero_point), c->clamp_min,
                            c->clamp_max);
}

void nn_div_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window) {
    const nn_div_constants c = *(const nn_div_constants *)constants;
    nn_for_pairs(divide, &c, in1, in2, out, window);
}
