/* ADD on int16 of two tensors with the same channels; the plain kernel serves broadcasting along
 * channels, and factors that nn_dsp_factor cannot stand for. */
#include "nn_dsp_pixelwise_s16.h"

#define LEFT_SHIFT 15

/* The operand of the larger scale is multiplied by one half: nothing to round. */
typedef struct {
    nn_dsp_factor factor; /* of the other one */
    nn_dsp_factor output;
    int32_t swapped; /* the second operand is the exact one */
    int32_t clamp_min, clamp_max;
} add_plan;

/* `count`: bytes. */
NN_OUTLINE void compute(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    const add_plan p = *(const add_plan *)plan;
    const int16_t *exact = (const int16_t *)(const void *)(p.swapped ? b : a);
    const int16_t *other = (const int16_t *)(const void *)(p.swapped ? a : b);
    int16_t *to = (int16_t *)(void *)out, *const end = to + count / 2;
#pragma GCC unroll 1
    while (to != end) {
        const int32_t second = nn_dsp_scale(*other++ * (1 << (LEFT_SHIFT + 1)), &p.factor);
        const int32_t twice = *exact++ * (1 << LEFT_SHIFT) + second * 2;
        *to++ = (int16_t)nn_ssat16(nn_dsp_scale(twice, &p.output));
    }
    nn_dsp_clamp_wide(end - count / 2, count / 2, p.clamp_min, p.clamp_max);
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
        !nn_dsp_find_factor(&p->output, c->output_multiplier, c->output_shift, 0)) {
        return 0;
    }
    if (first && second) {
        /* Half of a multiple of 4, rounded from just below or above, and half of that. */
        const nn_dsp_factor half_of_half = {INT32_MAX, 1, 1};
        p->factor = half_of_half;
        return 1;
    }
    return nn_dsp_find_factor(&p->factor, first ? c->input2_multiplier : c->input1_multiplier,
                              first ? c->input2_shift : c->input1_shift, 0);
}

void nn_add_s16_dsp(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    add_plan plan;
    if (in1->channels == out->channels && in2->channels == out->channels &&
        find_plan(&plan, (const nn_add_constants *)constants)) {
        nn_dsp_for_wide_runs(compute, &plan, in1, in2, out, window);
    } else {
        nn_add_s16(constants, in1, in2, out, window);
    }
}
