/* MUL, with broadcasting, Helium: eight elements at a time. Constants: nn_mul_constants.
 *
 * Differences to the zero points fit in int16, and the widening products of the even and of the
 * odd ones are what nn_mve_narrow puts in order again. */
#include "nn_mve.h"

typedef struct {
    nn_mul_constants c;
    int16x8_t low, high;
} multiplication;

/* Four products, scaled, without the output's zero point. `general`: shifted left as well. */
static inline int32x4_t scale(int32x4_t product, const nn_mul_constants *c, int general) {
    const int32_t shift = c->output_shift;
    if (general) {
        product = vshlq_r_s32(product, nn_max(shift, 0));
    }
    product = vqrdmulhq_n_s32(product, c->output_multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(product, product, shift < 0), nn_min(shift, 0));
}

static inline int16x8_t multiply(int16x8_t a, int16x8_t b, const void *plan, int general) {
    const multiplication *const m = (const multiplication *)plan;
    a = vsubq_n_s16(a, (int16_t)m->c.input1_zero_point);
    b = vsubq_n_s16(b, (int16_t)m->c.input2_zero_point);
    const int32x4_t even = scale(vmullbq_int_s16(a, b), &m->c, general);
    const int32x4_t odd = scale(vmulltq_int_s16(a, b), &m->c, general);
    return nn_mve_narrow(even, odd, m->c.output_zero_point, m->low, m->high);
}

static inline int16x8_t multiply_plain(int16x8_t a, int16x8_t b, const void *plan) {
    return multiply(a, b, plan, 0);
}

static inline int16x8_t multiply_any(int16x8_t a, int16x8_t b, const void *plan) {
    return multiply(a, b, plan, 1);
}

/* `single`: the second operand's pixels are one element. */
static inline void multiply_as(const void *plan, const nn_mve_strip *s, int single, int general) {
    const nn_mul_constants *const c = (const nn_mul_constants *)plan;
    const multiplication m = {*c, vdupq_n_s16((int16_t)c->clamp_min),
                              vdupq_n_s16((int16_t)c->clamp_max)};
    nn_mve_each_eight(s, single, general ? multiply_any : multiply_plain, &m);
}

/* What networks are made of, and the rest; nn_mve_compute_strip. */
static NN_NOINLINE void plain(const void *c, const nn_mve_strip *s) {
    multiply_as(c, s, 0, 0);
}

static NN_NOINLINE void plain_single(const void *c, const nn_mve_strip *s) {
    multiply_as(c, s, 1, 0);
}

static NN_NOINLINE void any(const void *c, const nn_mve_strip *s) {
    multiply_as(c, s, 0, 1);
}

static NN_NOINLINE void any_single(const void *c, const nn_mve_strip *s) {
    multiply_as(c, s, 1, 1);
}

void nn_mul_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    nn_mul_constants c = *(const nn_mul_constants *)constants;
    const int single = in1->channels != out->channels || in2->channels != out->channels;
    if (in1->channels != out->channels) { /* the factors change places */
        const nn_view *const other = in1;
        const int32_t zero_point = c.input1_zero_point;
        in1 = in2;
        in2 = other;
        c.input1_zero_point = c.input2_zero_point;
        c.input2_zero_point = zero_point;
    }
    if (c.output_shift <= 0) {
        nn_mve_for_strips(1, single ? plain_single : plain, &c, in1, in2, out, window);
    } else {
        nn_mve_for_strips(1, single ? any_single : any, &c, in1, in2, out, window);
    }
}
