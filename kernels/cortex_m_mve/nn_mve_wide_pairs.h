/* Elementwise operators on two int16 operands, with broadcasting, Helium: eight elements at a time.
 *
 * A kernel that includes this says what it makes of eight pairs; `plain` is a constant:
 *     static inline int16x8_t nn_mve_eight(int16x8_t a, int16x8_t b, const nn_mve_pair_plan *p,
 *                                          int plain);
 */
#ifndef NN_MVE_WIDE_PAIRS_H
#define NN_MVE_WIDE_PAIRS_H

#include "nn_mve_wide.h"

/* A factor as a multiplier over 2^31, and a shift to the right by -shift after it. */
typedef struct {
    int32_t multiplier, shift, odd; /* odd: shift < 0 */
} nn_mve_factor;

/* What a run needs; a step is 0 if the operand is one element, else 1. */
typedef struct {
    nn_mve_factor first, second, result;
    int32_t sign; /* of the second operand */
    int32_t left; /* bits to the left before the result's factor; 0 if plain */
    int32_t step1, step2;
    int32_t low, high;
} nn_mve_pair_plan;

static inline int16x8_t nn_mve_eight(int16x8_t a, int16x8_t b, const nn_mve_pair_plan *p,
                                     int plain);

static inline nn_mve_factor nn_mve_factor_of(int32_t multiplier, int32_t shift) {
    const nn_mve_factor f = {multiplier, nn_min(shift, 0), shift < 0};
    return f;
}

/* Rounded twice, as nn_mve.h says. */
static inline int32x4_t nn_mve_scale(int32x4_t values, const nn_mve_factor *f) {
    values = vqrdmulhq_n_s32(values, f->multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(values, values, f->odd), f->shift);
}

/* Eight results of the values in even lanes and those in odd ones. */
static inline int16x8_t nn_mve_results(int32x4_t even, int32x4_t odd, const nn_mve_pair_plan *p,
                                       int plain) {
    even = nn_mve_scale(plain ? even : vshlq_r_s32(even, p->left), &p->result);
    odd = nn_mve_scale(plain ? odd : vshlq_r_s32(odd, p->left), &p->result);
    const int16x8_t both = vqmovnbq_s32(vreinterpretq_s16_s32(even), even);
    return vqmovntq_s32(both, odd);
}

static inline int16x8_t nn_mve_clamp(int16x8_t values, const nn_mve_pair_plan *p) {
    const int16x8_t low = vdupq_n_s16((int16_t)p->low), high = vdupq_n_s16((int16_t)p->high);
    return vminq_s16(vmaxq_s16(values, low), high);
}

static inline void nn_mve_pairs_as(const void *plan, const nn_mve_strip *s, int plain) {
    const nn_mve_pair_plan p = *(const nn_mve_pair_plan *)plan;
    for (nn_mve_strip at = *s; at.pixels > 0; nn_mve_next_pixel(&at)) {
        const int16_t *a = (const int16_t *)(const void *)at.a;
        const int16_t *b = (const int16_t *)(const void *)at.b;
        int16_t *out = (int16_t *)(void *)at.out;
        int16x8_t x = vdupq_n_s16(*a), y = vdupq_n_s16(*b);
        int32_t count = s->count;
        for (; plain && count >= 8; count -= 8, a += 8, b += 8, out += 8) {
            vst1q_s16(out, nn_mve_clamp(nn_mve_eight(vld1q_s16(a), vld1q_s16(b), &p, plain), &p));
        }
        for (; count > 0; count -= 8, a += 8, b += 8, out += 8) {
            const mve_pred16_t some =
                vctp16q((uint32_t)count); /* nothing outside is read or written */
            x = plain || p.step1 != 0 ? vldrhq_z_s16(a, some) : x;
            y = plain || p.step2 != 0 ? vldrhq_z_s16(b, some) : y;
            vstrhq_p_s16(out, nn_mve_clamp(nn_mve_eight(x, y, &p, plain), &p), some);
        }
    }
}

/* nn_mve_compute_strip: of two operands without a shift to the left, and any. */
static NN_NOINLINE void nn_mve_plain_pairs(const void *plan, const nn_mve_strip *s) {
    nn_mve_pairs_as(plan, s, 1);
}

static NN_NOINLINE void nn_mve_any_pairs(const void *plan, const nn_mve_strip *s) {
    nn_mve_pairs_as(plan, s, 0);
}

/* `plain`: besides what is tested here. */
static inline void nn_mve_all_pairs(nn_mve_pair_plan *p, int plain, const nn_view *in1,
                                    const nn_view *in2, const nn_view *out,
                                    const nn_window *window) {
    p->step1 = in1->channels == out->channels;
    p->step2 = in2->channels == out->channels;
    plain = plain && p->step1 && p->step2 && p->left == 0;
    nn_mve_for_strips(2, plain ? nn_mve_plain_pairs : nn_mve_any_pairs, p, in1, in2, out, window);
}

#endif
