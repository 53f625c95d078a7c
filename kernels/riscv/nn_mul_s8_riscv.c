/* MUL of operands with the output's channels; the plain kernel does the rest. */
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
    for (const int8_t *end = out + count; out != end; out++) {
        const int32_t product = (*a++ - p.zero_point1) * (*b++ - p.zero_point2);
        *out = (int8_t)nn_clamp(nn_riscv_scale(product, &p.output), p.low, p.high);
    }
}

void nn_mul_s8_riscv(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    plan p = {c->input1_zero_point, c->input2_zero_point, c->clamp_min, c->clamp_max, {0, 0, 0}};
    if (in1->channels != out->channels || in2->channels != out->channels ||
        !nn_riscv_find(&p.output, c->output_multiplier, c->output_shift, c->output_zero_point)) {
        nn_mul_s8(constants, in1, in2, out, window);
        return;
    }
    nn_for_runs(multiply_run, &p, in1, in2, out, window);
}
