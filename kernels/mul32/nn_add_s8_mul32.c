/* ADD and SUB of operands with the output's channels; the plain kernel does the rest.
 *
 * An operand's difference to its zero point has nine bits, so its first rounding takes two short
 * products. The operand of the larger scale is halved by the rescaling, and nothing is lost: that
 * takes a shift. */
#include "nn_mul32.h"
#include "nn_mul32_scale.h"
#include "nn_pixelwise.h"

#define LEFT_SHIFT 20 /* of int8 operands */
#define LOW_BITS 11   /* 31 - LEFT_SHIFT: of a multiplier, below the first rounding */

/* An operand: how it is brought to the common scale. */
typedef struct {
    int32_t zero_point; /* as a natural byte */
    int32_t low, high, half, exponent;
} operand;

typedef struct {
    operand first, second; /* of the halved operand only the zero point is used */
    int32_t sign, clamp_min, clamp_max;
    nn_mul32_rounding output;
} plan;

/* round(difference * 2^20 * multiplier * 2^(-31 - exponent)), twice */
static inline int32_t rescale(int32_t difference, const operand *o) {
    const int32_t q =
        difference * o->high + ((difference * o->low + (1 << (LOW_BITS - 1))) >> LOW_BITS);
    return (q + (q >> 31) + o->half) >> o->exponent;
}

static inline __attribute__((always_inline)) void add_run(const void *constants, const int8_t *a,
                                                          const int8_t *b, int8_t *out,
                                                          int32_t count, int halved) {
    const plan p = *(const plan *)constants;
    for (const int8_t *end = out + count; out != end; out++) {
        const int32_t x = nn_mul32_natural(a++) - p.first.zero_point;
        const int32_t y = nn_mul32_natural(b++) - p.second.zero_point;
        const int32_t first = halved ? x * (1 << (LEFT_SHIFT - 1)) : rescale(x, &p.first);
        const int32_t second = rescale(y, &p.second);
        const int32_t sum = p.sign < 0 ? first - second : first + second;
        *out = (int8_t)nn_clamp(nn_mul32_round(sum, &p.output), p.clamp_min, p.clamp_max);
    }
}

NN_OUTLINE void add_halved(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                           int32_t count) {
    add_run(constants, a, b, out, count, 1);
}

NN_OUTLINE void add_any(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    add_run(constants, a, b, out, count, 0);
}

/* Sets the factor up; 0 if it is none that an operand can have. */
static int find(operand *o, int32_t zero_point, int32_t multiplier, int32_t shift) {
    o->zero_point = zero_point + 128;
    if (multiplier < 0 || shift > -1 || shift < -28) {
        return 0;
    }
    o->low = multiplier & ((1 << LOW_BITS) - 1);
    o->high = multiplier >> LOW_BITS;
    o->half = 1 << (-shift - 1);
    o->exponent = -shift;
    return 1;
}

void nn_add_s8_mul32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window) {
    const nn_add_constants *c = (const nn_add_constants *)constants;
    const int32_t sign = c->input2_multiplier < 0 ? -1 : 1;
    const int32_t multiplier2 = sign * c->input2_multiplier;
    const int halved1 = c->input1_multiplier == 1 << 30 && c->input1_shift == 0;
    const int halved2 = multiplier2 == 1 << 30 && c->input2_shift == 0;
    plan p = {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, sign, c->clamp_min, c->clamp_max, {0, 0, 0}};
    const int fits1 = find(&p.first, c->input1_zero_point, c->input1_multiplier, c->input1_shift);
    const int fits2 = find(&p.second, c->input2_zero_point, multiplier2, c->input2_shift);
    if (in1->channels != out->channels || in2->channels != out->channels ||
        c->left_shift != LEFT_SHIFT ||
        !nn_mul32_find(&p.output, c->output_multiplier, c->output_shift, c->output_zero_point)) {
        nn_add_s8(constants, in1, in2, out, window);
    } else if (halved1 && fits2) {
        nn_for_runs(add_halved, &p, in1, in2, out, window);
    } else if (halved2 && fits1 && sign > 0) {
        const operand first = p.first;
        p.first = p.second;
        p.second = first;
        nn_for_runs(add_halved, &p, in2, in1, out, window);
    } else if (fits1 && fits2) {
        nn_for_runs(add_any, &p, in1, in2, out, window);
    } else {
        nn_add_s8(constants, in1, in2, out, window);
    }
}
