/* ADD and SUB on int16, with broadcasting, Helium. Constants as nn_add_s16's.
 *
 * Operands are brought to twice the larger of their scales, so the factor of one is 1/2, which is a
 * shift (`plain`: of the first). */
#include "nn_mve_wide_pairs.h"

#define LEFT_SHIFT 15 /* of both operands, always */

static inline int32x4_t add(int32x4_t a, int32x4_t b, const nn_mve_pair_plan *p, int plain) {
    const int32x4_t second = nn_mve_scale(b, &p->second);
    return vmlaq_n_s32(plain ? a : nn_mve_scale(a, &p->first), second, p->sign);
}

static inline int16x8_t nn_mve_eight(int16x8_t a, int16x8_t b, const nn_mve_pair_plan *p,
                                     int plain) {
    const int32x4_t even = plain ? vshllbq_n_s16(a, LEFT_SHIFT - 1) : vshllbq_n_s16(a, LEFT_SHIFT);
    const int32x4_t odd = plain ? vshlltq_n_s16(a, LEFT_SHIFT - 1) : vshlltq_n_s16(a, LEFT_SHIFT);
    return nn_mve_results(add(even, vshllbq_n_s16(b, LEFT_SHIFT), p, plain),
                          add(odd, vshlltq_n_s16(b, LEFT_SHIFT), p, plain), p, plain);
}

static inline int is_half(const nn_mve_factor *f) {
    return f->multiplier == 1 << 30 && f->shift == 0;
}

void nn_add_s16_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    const nn_add_constants *const c = (const nn_add_constants *)constants;
    nn_mve_pair_plan p;
    p.sign = c->input2_multiplier < 0 ? -1 : 1;
    p.first = nn_mve_factor_of(c->input1_multiplier, c->input1_shift);
    p.second = nn_mve_factor_of(c->input2_multiplier * p.sign, c->input2_shift);
    p.result = nn_mve_factor_of(c->output_multiplier, c->output_shift);
    p.left = nn_max(c->output_shift, 0);
    p.low = c->clamp_min;
    p.high = c->clamp_max;
    if (!is_half(&p.first) && p.sign > 0) { /* the operands change places */
        const nn_mve_factor first = p.first;
        const nn_view *const other = in1;
        p.first = p.second;
        p.second = first;
        in1 = in2;
        in2 = other;
    }
    nn_mve_all_pairs(&p, is_half(&p.first), in1, in2, out, window);
}
