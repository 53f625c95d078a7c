/* ADD, with broadcasting; the plain kernel serves factors that nn_dsp_factor cannot stand for. */
#include "nn_dsp_pixelwise.h"

#define LEFT_SHIFT 20

/* The operand of the larger scale is multiplied by one half: nothing to round. */
typedef struct {
    int32_t exact, other; /* what zero points amount to, doubled */
    nn_dsp_factor factor; /* of the other one */
    nn_dsp_factor output;
    int32_t swapped; /* the second operand is the exact one */
    int32_t clamp_min, clamp_max;
} add_plan;

static inline int32_t add(const add_plan *p, int32_t exact, int32_t other) {
    const int32_t second = nn_dsp_scale(p->other + other * (1 << (LEFT_SHIFT + 1)), &p->factor);
    return nn_ssat8(nn_dsp_scale(p->exact + exact * (1 << LEFT_SHIFT) + second * 2, &p->output));
}

/* One by one: what is constant fits the registers then. */
NN_OUTLINE void compute(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    const add_plan p = *(const add_plan *)plan;
    const int8_t *exact = p.swapped ? b : a, *other = p.swapped ? a : b;
    int8_t *const end = out + count;
#pragma GCC unroll 1
    while (out != end) {
        *out++ = (int8_t)add(&p, *exact++, *other++);
    }
    nn_dsp_clamp(end - count, count, p.clamp_min, p.clamp_max);
}

/* `b` is one element, and the exact operand or the other one. */
NN_OUTLINE void compute_single(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count) {
    const add_plan p = *(const add_plan *)plan;
    int8_t *const end = out + count;
    if (p.swapped) {
        const int32_t exact = p.exact + *b * (1 << LEFT_SHIFT);
#pragma GCC unroll 1
        while (out != end) {
            const int32_t other = p.other + *a++ * (1 << (LEFT_SHIFT + 1));
            const int32_t second = nn_dsp_scale(other, &p.factor);
            *out++ = (int8_t)nn_ssat8(nn_dsp_scale(exact + second * 2, &p.output));
        }
    } else {
        const int32_t other = p.other + *b * (1 << (LEFT_SHIFT + 1));
        const int32_t rest = p.exact + nn_dsp_scale(other, &p.factor) * 2;
#pragma GCC unroll 2
        while (out != end) {
            *out++ = (int8_t)nn_ssat8(nn_dsp_scale(rest + *a++ * (1 << LEFT_SHIFT), &p.output));
        }
    }
    nn_dsp_clamp(end - count, count, p.clamp_min, p.clamp_max);
}

/* 0: the plain kernel must do it. */
static int find_plan(add_plan *p, const nn_add_constants *c) {
    const int32_t half = 1 << 30;
    const int first = c->input1_multiplier == half && c->input1_shift == 0;
    const int second = c->input2_multiplier == half && c->input2_shift == 0;
    p->swapped = !first;
    p->clamp_min = c->clamp_min;
    p->clamp_max = c->clamp_max;
    if (c->left_shift != LEFT_SHIFT || !(first || second) ||
        !nn_dsp_find_factor(&p->output, c->output_multiplier, c->output_shift,
                            c->output_zero_point)) {
        return 0;
    }
    p->exact = -(first ? c->input1_zero_point : c->input2_zero_point) * (1 << LEFT_SHIFT);
    p->other = -(first ? c->input2_zero_point : c->input1_zero_point) * (1 << (LEFT_SHIFT + 1));
    if (first && second) {
        /* Half of a multiple of 4, rounded from just below or above, and half of that. */
        const nn_dsp_factor half_of_half = {INT32_MAX, 1, 1};
        p->factor = half_of_half;
        return 1;
    }
    return nn_dsp_find_factor(&p->factor, first ? c->input2_multiplier : c->input1_multiplier,
                              first ? c->input2_shift : c->input1_shift, 0);
}

void nn_add_s8_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const int turned = in1->channels != out->channels; /* the operands change places */
    add_plan plan;
    if (!find_plan(&plan, (const nn_add_constants *)constants)) {
        nn_add_s8(constants, in1, in2, out, window);
    } else if (turned || in2->channels != out->channels) {
        plan.swapped ^= turned;
        nn_dsp_for_pixels(compute_single, &plan, turned ? in2 : in1, turned ? in1 : in2, out,
                          window);
    } else {
        nn_dsp_for_runs(compute, &plan, in1, in2, out, window);
    }
}
