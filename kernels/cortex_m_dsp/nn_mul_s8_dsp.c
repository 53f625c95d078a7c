/* MUL, with broadcasting; the plain kernel serves factors that nn_dsp_factor cannot stand for. */
#include "nn_dsp_pixelwise.h"

typedef struct {
    int32_t first, second; /* what is added to the first operand, doubled, and to the second */
    nn_dsp_factor output;
    int32_t clamp_min, clamp_max;
} mul_plan;

static inline int32_t multiply(const mul_plan *p, int32_t a, int32_t b) {
    return nn_ssat8(nn_dsp_scale((p->first + a * 2) * (p->second + b), &p->output));
}

/* One by one: what is constant fits the registers then. */
NN_OUTLINE void compute(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    const mul_plan p = *(const mul_plan *)plan;
    int8_t *const end = out + count;
#pragma GCC unroll 4
    while (out != end) {
        *out++ = (int8_t)multiply(&p, *a++, *b++);
    }
    nn_dsp_clamp(end - count, count, p.clamp_min, p.clamp_max);
}

/* The second operand is one element. */
NN_OUTLINE void compute_single(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count) {
    const mul_plan p = *(const mul_plan *)plan;
    const int32_t second = p.second + *b, twice = 2 * second, first = p.first * second;
    int8_t *const end = out + count;
#pragma GCC unroll 4
    while (out != end) {
        *out++ = (int8_t)nn_ssat8(nn_dsp_scale(first + *a++ * twice, &p.output));
    }
    nn_dsp_clamp(end - count, count, p.clamp_min, p.clamp_max);
}

void nn_mul_s8_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    const int turned = in1->channels != out->channels; /* the factors change places */
    const int32_t zero1 = turned ? c->input2_zero_point : c->input1_zero_point;
    const int32_t zero2 = turned ? c->input1_zero_point : c->input2_zero_point;
    const nn_view *const first = turned ? in2 : in1, *const second = turned ? in1 : in2;
    mul_plan plan;
    plan.first = -2 * zero1;
    plan.second = -zero2;
    plan.clamp_min = c->clamp_min;
    plan.clamp_max = c->clamp_max;
    if (!nn_dsp_find_factor(&plan.output, c->output_multiplier, c->output_shift,
                            c->output_zero_point)) {
        nn_mul_s8(constants, in1, in2, out, window);
    } else if (second->channels != out->channels) {
        nn_dsp_for_pixels(compute_single, &plan, first, second, out, window);
    } else {
        nn_dsp_for_runs(compute, &plan, first, second, out, window);
    }
}
