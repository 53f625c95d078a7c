/* MUL on int16, with broadcasting, Helium. Constants as nn_mul_s16's. */
#include "nn_mve_wide_pairs.h"

static inline int16x8_t nn_mve_eight(int16x8_t a, int16x8_t b, const nn_mve_pair_plan *p,
                                     int plain) {
    return nn_mve_results(vmullbq_int_s16(a, b), vmulltq_int_s16(a, b), p, plain);
}

void nn_mul_s16_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    const nn_mul_constants *const c = (const nn_mul_constants *)constants;
    nn_mve_pair_plan p;
    p.result = nn_mve_factor_of(c->output_multiplier, c->output_shift);
    p.left = nn_max(c->output_shift, 0);
    p.low = c->clamp_min;
    p.high = c->clamp_max;
    nn_mve_all_pairs(&p, 1, in1, in2, out, window);
}
