/* MUL, with broadcasting, Helium: eight elements at a time. Constants: nn_mul_constants.
 *
 * Differences to the zero points fit in int16, and the widening products of the even and of the
 * odd ones are what nn_mve_narrow puts in order again. */
#include "nn_mve.h"

/* Four products, scaled, without the output's zero point. `general`: shifted left as well. */
static inline int32x4_t scale(int32x4_t product, const nn_mul_constants *c, int general) {
    const int32_t shift = c->output_shift;
    if (general) {
        product = vshlq_r_s32(product, nn_max(shift, 0));
    }
    product = vqrdmulhq_n_s32(product, c->output_multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(product, product, shift < 0), nn_min(shift, 0));
}

/* Eight outputs of eight differences each. */
static inline int16x8_t multiply(int16x8_t a, int16x8_t b, const nn_mul_constants *c, int16x8_t low,
                                 int16x8_t high, int general) {
    const int32x4_t even = scale(vmullbq_int_s16(a, b), c, general);
    const int32x4_t odd = scale(vmulltq_int_s16(a, b), c, general);
    return nn_mve_narrow(even, odd, c->output_zero_point, low, high);
}

/* `single`: the second operand's pixels are one element. */
static inline void multiply_as(const void *plan, const nn_mve_strip *s, int single, int general) {
    const nn_mul_constants c = *(const nn_mul_constants *)plan;
    const int16_t a_zero = (int16_t)c.input1_zero_point, b_zero = (int16_t)c.input2_zero_point;
    const int16x8_t low = vdupq_n_s16((int16_t)c.clamp_min);
    const int16x8_t high = vdupq_n_s16((int16_t)c.clamp_max);
    const int8_t *a_pixel = s->a, *b_pixel = s->b;
    int8_t *out_pixel = s->out;
    for (int32_t i = s->pixels; i > 0; i--) {
        const int8_t *a = a_pixel, *b = b_pixel;
        int8_t *out = out_pixel;
        int32_t count = s->count;
        int16x8_t second = vdupq_n_s16((int16_t)(*b - b_zero));
        for (; count >= 8; count -= 8, a += 8, out += 8) {
            const int16x8_t first = vsubq_n_s16(vldrbq_s16(a), a_zero);
            if (!single) {
                second = vsubq_n_s16(vldrbq_s16(b), b_zero);
                b += 8;
            }
            vstrbq_s16(out, multiply(first, second, &c, low, high, general));
        }
        if (count > 0) { /* nothing outside is read or written */
            const mve_pred16_t some = vctp16q((uint32_t)count);
            const int16x8_t first = vsubq_n_s16(vldrbq_z_s16(a, some), a_zero);
            second = single ? second : vsubq_n_s16(vldrbq_z_s16(b, some), b_zero);
            vstrbq_p_s16(out, multiply(first, second, &c, low, high, general), some);
        }
        a_pixel += s->a_step;
        b_pixel += s->b_step;
        out_pixel += s->out_step;
    }
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
