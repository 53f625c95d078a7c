/* ADD and SUB of operands with the output's channels; the plain kernel does the rest.
 *
 * The operand of the larger scale is halved by the rescaling, and nothing is lost: that takes a
 * shift.
 *
 * A kernel that includes this says before how it is called, which is the plain one, and what
 * elements are: #define NN_RISCV_ADD nn_add_s8_riscv #define NN_RISCV_ADD_REST nn_add_s8 typedef
 * int8_t nn_riscv_element; */
#ifndef NN_RISCV_ADD_H
#define NN_RISCV_ADD_H

#include "nn_pixelwise.h"
#include "nn_riscv.h"
#include "nn_riscv_factor.h"

/* An operand: how it is brought to the common scale. */
typedef struct {
    int32_t zero_point;
    nn_riscv_factor factor;
} operand;

typedef struct {
    operand first, second; /* of the halved operand only the zero point is used */
    int32_t left_shift, sign, low, high;
    nn_riscv_factor output;
} plan;

static inline __attribute__((always_inline)) void add_run(const void *constants, const int8_t *a,
                                                          const int8_t *b, int8_t *out,
                                                          int32_t count, int halved) {
    const plan p = *(const plan *)constants;
    const nn_riscv_element *first_at = (const nn_riscv_element *)(const void *)a;
    const nn_riscv_element *second_at = (const nn_riscv_element *)(const void *)b;
    nn_riscv_element *to = (nn_riscv_element *)(void *)out;
    for (const nn_riscv_element *end = to + count; to != end; to++) {
        const int32_t x = *first_at++ - p.first.zero_point, y = *second_at++ - p.second.zero_point;
        const int32_t first = halved ? x * (1 << (p.left_shift - 1))
                                     : nn_riscv_scale(x * (1 << p.left_shift), &p.first.factor);
        const int32_t second = nn_riscv_scale(y * (1 << p.left_shift), &p.second.factor);
        const int32_t sum = p.sign < 0 ? first - second : first + second;
        *to = (nn_riscv_element)nn_clamp(nn_riscv_scale(sum, &p.output), p.low, p.high);
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

/* Whether rescaling by these is halving. */
static int halves(const nn_add_constants *c, int32_t multiplier, int32_t shift) {
    return multiplier == 1 << 30 && shift == 0 && c->left_shift > 0;
}

void NN_RISCV_ADD(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window) {
    const nn_add_constants *c = (const nn_add_constants *)constants;
    const int32_t sign = c->input2_multiplier < 0 ? -1 : 1;
    const int halved1 = halves(c, c->input1_multiplier, c->input1_shift);
    const int halved2 = halves(c, c->input2_multiplier, c->input2_shift);
    plan p = {{c->input1_zero_point, {0, 0, 0}},
              {c->input2_zero_point, {0, 0, 0}},
              c->left_shift,
              sign,
              c->clamp_min,
              c->clamp_max,
              {0, 0, 0}};
    const int fits1 = nn_riscv_find(&p.first.factor, c->input1_multiplier, c->input1_shift, 0);
    const int fits2 =
        nn_riscv_find(&p.second.factor, sign * c->input2_multiplier, c->input2_shift, 0);
    const int fits =
        in1->channels == out->channels && in2->channels == out->channels &&
        nn_riscv_find(&p.output, c->output_multiplier, c->output_shift, c->output_zero_point);
    const nn_view *first = in1, *second = in2;
    nn_run_of_two *run = fits1 && fits2 ? add_any : NULL;
    if (halved1 && fits2) {
        run = add_halved;
    } else if (halved2 && fits1 && sign > 0) {
        const operand of_first = p.first;
        p.first = p.second;
        p.second = of_first;
        first = in2;
        second = in1;
        run = add_halved;
    }
    if (fits && run != NULL) {
        nn_for_blocks(sizeof(nn_riscv_element), run, &p, first, second, out, window);
    } else {
        NN_RISCV_ADD_REST(constants, in1, in2, out, window);
    }
}

#endif
