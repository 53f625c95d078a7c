/* MUL of operands with the output's channels; the plain kernel does the rest.
 *
 * A kernel that includes this says before how it is called, which is the plain one, and what
 * elements are: #define NN_RISCV_MUL nn_mul_s8_riscv #define NN_RISCV_MUL_REST nn_mul_s8 typedef
 * int8_t nn_riscv_element; */
#ifndef NN_RISCV_MUL_H
#define NN_RISCV_MUL_H

#include "nn_pixelwise.h"
#include "nn_riscv.h"
#include "nn_riscv_factor.h"

typedef struct {
    int32_t zero_point1, zero_point2, low, high;
    nn_riscv_factor output;
} plan;

NN_OUTLINE void multiply_run(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                             int32_t count) {
    const plan p = *(const plan *)constants;
    const nn_riscv_element *first = (const nn_riscv_element *)(const void *)a;
    const nn_riscv_element *second = (const nn_riscv_element *)(const void *)b;
    nn_riscv_element *to = (nn_riscv_element *)(void *)out;
    for (const nn_riscv_element *end = to + count; to != end; to++) {
        const int32_t product = (*first++ - p.zero_point1) * (*second++ - p.zero_point2);
        *to = (nn_riscv_element)nn_clamp(nn_riscv_scale(product, &p.output), p.low, p.high);
    }
}

void NN_RISCV_MUL(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    plan p = {c->input1_zero_point, c->input2_zero_point, c->clamp_min, c->clamp_max, {0, 0, 0}};
    if (in1->channels != out->channels || in2->channels != out->channels ||
        !nn_riscv_find(&p.output, c->output_multiplier, c->output_shift, c->output_zero_point)) {
        NN_RISCV_MUL_REST(constants, in1, in2, out, window);
        return;
    }
    nn_for_blocks(sizeof(nn_riscv_element), multiply_run, &p, in1, in2, out, window);
}

#endif
