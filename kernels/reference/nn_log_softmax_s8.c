/* LOG_SOFTMAX over the channels, in the fixed-point arithmetic of the reference kernel: Qm.n is a
 * signed number with m integer and n fractional bits. */
#include "nn_fixed.h"

#define SUM_SHIFT 12                /* from Q0.31 to Q12.19 */
#define ROOT_HALF 1518500250        /* sqrt(1/2) as Q0.31 */
#define FOURTH_ROOT_HALF 1805811301 /* (1/2)^(1/4) as Q0.31; r below is its inverse */
#define LOG_2 1488522236            /* log(2) as Q0.31 */
#define ALPHA_N 117049297           /* 11/240 * r, as Q0.31, as the next three */
#define ALPHA_D 127690142           /* 1/20 * r */
#define ALPHA_I 1057819769          /* 2/r - r */
#define ALPHA_F 638450708           /* 1/4 * r */
#define QUARTER (1 << 23)           /* as Q6.25 */
#define TO_SIXTEENTHS 22            /* from Q5.26 */
#define ZERO_POINT 127

/* log(x) of a Q12.19 number >= 1, as Q5.26: x = 2^k * r with r near (1/2)^(1/4), by the better of
 * two scalings half a bit apart, and a rational approximation there. */
static int32_t logarithm(int32_t x) {
    const int32_t zeros = nn_leading_zeros((uint32_t)x);
    const int32_t r_a =
        nn_saturating_shift(nn_high_multiply(nn_saturating_shift(x, zeros - 1), ROOT_HALF), 1);
    const int32_t power_a = (12 - zeros) * (1 << 25) + QUARTER;
    const int32_t room = nn_leading_zeros((uint32_t)nn_high_multiply(x, ROOT_HALF)) - 1;
    const int32_t r_b = nn_saturating_shift(x, room);
    const int32_t power_b = (12 - room) * (1 << 25) - QUARTER;
    const int32_t r = nn_min(r_a, r_b), power = nn_max(power_a, power_b);
    const int32_t p = (int32_t)(((uint32_t)r + FOURTH_ROOT_HALF + 1) >> 1);
    const int32_t q = (r - FOURTH_ROOT_HALF) * 2;
    const int32_t square = nn_high_multiply(q, q);
    const int32_t numerator =
        nn_high_multiply(q, r) + nn_high_multiply(nn_high_multiply(q, square), ALPHA_N);
    const int32_t denominator =
        nn_high_multiply(p, ALPHA_I + q + nn_high_multiply(square, ALPHA_D)) +
        nn_high_multiply(q, ALPHA_F);
    const int32_t part =
        nn_high_multiply(nn_rounding_shift(numerator, 6), nn_one_over_one_plus(denominator));
    return nn_saturating_shift(nn_high_multiply(power, LOG_2) + part, 1);
}

static void log_softmax(const nn_log_softmax_constants *c, const int8_t *in, int8_t *out,
                        int32_t count) {
    int32_t largest = -128, sum = 0, total, least;
    for (int32_t i = 0; i < count; i++) {
        largest = nn_max(largest, in[i]);
    }
    for (int32_t i = 0; i < count; i++) {
        sum += nn_rounding_shift(c->exponentials[largest - in[i]], SUM_SHIFT);
    }
    total = logarithm(sum);
    least = nn_requantise(total + INT32_MIN, c->back_multiplier, c->back_shift);
    least = nn_max(least, -c->radius - 1);
    for (int32_t i = 0; i < count; i++) {
        const int32_t difference = in[i] - largest;
        if (difference > least) {
            const int32_t scaled = nn_requantise(difference, c->multiplier, c->shift);
            const int32_t steps = nn_rounding_shift(nn_wrapping_add(scaled, -total), TO_SIXTEENTHS);
            out[i] = (int8_t)nn_clamp(steps + ZERO_POINT, -128, 127);
        } else {
            out[i] = -128;
        }
    }
}

void nn_log_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    const nn_log_softmax_constants *c = (const nn_log_softmax_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            log_softmax(c, nn_pixel(in, y, x), nn_out_pixel(out, y, x), out->channels);
        }
    }
}
