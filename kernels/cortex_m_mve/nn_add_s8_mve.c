/* ADD and SUB, with broadcasting, Helium. Constants: nn_add_mve_constants.
 *
 * Nearly always the three roundings of the reference give what one line does: with
 *   sum = round(a * 2^24 * factor1 / 2^31) + offset + round(b * 2^24 * factor2 / 2^31)
 * the output is sum / 2^22, rounded, halves up, for each of the 65,536 pairs of elements. The
 * packing has tried them all, and says so (`linear`). Sixteen elements at a time then; eight
 * otherwise.
 *
 * In the other cases operands are brought to twice the larger of their scales, so the factor of one
 * is 1/2: it is exact, and a shift like the one to the left (`halved`). */
#include "nn_mve_add.h"

/* ---- one line ---------------------------------------------------------------------------------
 */

/* `single`: the second operand's pixels are one element, which is part of the offset then. */
static inline __attribute__((always_inline)) void add_line(const void *plan, const nn_mve_strip *s,
                                                           int single, int clamped) {
    nn_mve_line l = *(const nn_mve_line *)plan;
    const int32x4_t factor1 = vdupq_n_s32(l.factor1);
    for (nn_mve_strip at = *s; at.pixels > 0; nn_mve_next_pixel(&at)) {
        const int8_t *a = at.a, *b = at.b;
        int8_t *out = at.out;
        int32_t count = s->count;
        if (single) {
            l.offset =
                ((const nn_mve_line *)plan)->offset + nn_high_multiply(*b * (1 << 24), l.factor2);
        }
        for (; count >= 16; count -= 16, a += 16, out += 16) {
            const int8x16_t first = vldrbq_s8(a), second = single ? first : vldrbq_s8(b);
            vstrbq_s8(out, nn_mve_line_sixteen(first, second, factor1, &l, single, clamped));
            b += single ? 0 : 16;
        }
        if (count > 0) { /* nothing outside is read or written */
            const mve_pred16_t some = vctp8q((uint32_t)count);
            const int8x16_t first = vldrbq_z_s8(a, some);
            const int8x16_t second = single ? first : vldrbq_z_s8(b, some);
            vstrbq_p_s8(out, nn_mve_line_sixteen(first, second, factor1, &l, single, clamped),
                        some);
        }
    }
}

static NN_NOINLINE void add_line_plain(const void *plan, const nn_mve_strip *s) {
    add_line(plan, s, 0, 0);
}

static NN_NOINLINE void add_line_clamped(const void *plan, const nn_mve_strip *s) {
    add_line(plan, s, 0, 1);
}

static NN_NOINLINE void add_line_single(const void *plan, const nn_mve_strip *s) {
    add_line(plan, s, 1, 1);
}

static void add_by_line(const nn_add_mve_constants *k, const nn_view *in1, const nn_view *in2,
                        const nn_view *out, const nn_window *window) {
    const int32_t channels = out->channels, low = k->general.clamp_min, high = k->general.clamp_max;
    const nn_mve_line straight = {k->factor1, k->factor2, k->offset, low, high};
    const nn_mve_line turned = {k->factor2, k->factor1, k->offset, low, high};
    if (in1->channels != channels) { /* the operands change places */
        nn_mve_for_strips(1, add_line_single, &turned, in2, in1, out, window);
    } else if (in2->channels != channels) {
        nn_mve_for_strips(1, add_line_single, &straight, in1, in2, out, window);
    } else {
        nn_mve_for_strips(1, low > -128 || high < 127 ? add_line_clamped : add_line_plain,
                          &straight, in1, in2, out, window);
    }
}

/* ---- three roundings --------------------------------------------------------------------------
 */

/* What turns an operand into the common scale, and the sum into the output's. */
typedef struct {
    int32_t zero_point;
    int32_t left;   /* 2^left_shift */
    int32_t offset; /* minus the zero point, shifted left like the elements */
    int32_t multiplier, shift, odd;
    int32_t sign; /* what it has in the sum */
    uint32_t step;
} rescaling;

typedef struct {
    rescaling first, second, result;
    int32_t zero_point, low, high;
} addition;

static inline void open_factor(rescaling *r, int32_t zero_point, int32_t left_shift,
                               int32_t multiplier, int32_t shift) {
    r->zero_point = zero_point;
    r->left = 1 << left_shift;
    r->offset = -zero_point * r->left;
    r->sign = multiplier < 0 ? -1 : 1;
    r->multiplier = multiplier * r->sign;
    r->shift = shift;
    r->odd = shift < 0;
}

static inline int32x4_t rescale(int32x4_t values, const rescaling *r) {
    values = vqrdmulhq_n_s32(vmlasq_n_s32(values, vdupq_n_s32(r->left), r->offset), r->multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(values, values, r->odd), r->shift);
}

/* round(values * multiplier / 2^31) / 2^-shift, halves away from zero; `odd`: shift < 0. */
static inline int32x4_t scale(int32x4_t values, int32_t multiplier, int32_t odd, int32x4_t shift) {
    values = vqrdmulhq_n_s32(values, multiplier);
    return vrshlq_s32(vqdmlahq_n_s32(values, values, odd), shift);
}

/* What add_halved keeps in registers. */
typedef struct {
    addition c;
    int32x4_t shift, result_shift;
    int16x8_t low, high;
} halved;

/* Eight sums, clamped. The second operand's differences are to be shifted left by 20, of which 7
 * fit in int16; the halved one's by 19, of which 3 are a factor that has the sign as well. */
static inline int16x8_t add_eight(int16x8_t a, int16x8_t b, const void *plan) {
    const halved *const h = (const halved *)plan;
    const rescaling *const second = &h->c.second, *const result = &h->c.result;
    a = vmulq_n_s16(vsubq_n_s16(a, (int16_t)h->c.first.zero_point), (int16_t)(8 * h->c.first.sign));
    b = vshlq_n_s16(vsubq_n_s16(b, (int16_t)second->zero_point), 7);
    const int32x4_t b_even = scale(vshllbq_n_s16(b, 13), second->multiplier, second->odd, h->shift);
    const int32x4_t b_odd = scale(vshlltq_n_s16(b, 13), second->multiplier, second->odd, h->shift);
    const int32x4_t even = vmlaq_n_s32(vshllbq_n_s16(a, 16), b_even, second->sign);
    const int32x4_t odd = vmlaq_n_s32(vshlltq_n_s16(a, 16), b_odd, second->sign);
    return nn_mve_narrow(scale(even, result->multiplier, result->odd, h->result_shift),
                         scale(odd, result->multiplier, result->odd, h->result_shift),
                         h->c.zero_point, h->low, h->high);
}

/* What networks are made of: elements in a row of both operands, the first one halved, and sums
 * that are shifted right. */
static NN_NOINLINE void add_halved(const void *plan, const nn_mve_strip *s) {
    const addition *const c = (const addition *)plan;
    const halved h = {*c, vdupq_n_s32(c->second.shift), vdupq_n_s32(c->result.shift),
                      vdupq_n_s16((int16_t)c->low), vdupq_n_s16((int16_t)c->high)};
    nn_mve_each_eight(s, 0, add_eight, &h);
}

/* Any addition; an operand's step is 0 if it is one element. */
static NN_NOINLINE void add_any(const void *plan, const nn_mve_strip *s) {
    const addition c = *(const addition *)plan;
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint32x4_t a_lanes = vmulq_n_u32(lanes, c.first.step);
    const uint32x4_t b_lanes = vmulq_n_u32(lanes, c.second.step);
    const int16x8_t low = vdupq_n_s16((int16_t)c.low), high = vdupq_n_s16((int16_t)c.high);
    for (int32_t i = 0; i < s->pixels; i++) {
        const int8_t *a = s->a + i * s->a_step, *b = s->b + i * s->b_step;
        int8_t *out = s->out + i * s->out_step;
        for (int32_t count = s->count; count > 0; count -= 4, out += 4) {
            const mve_pred16_t some = vctp32q((uint32_t)count);
            int32x4_t sums = rescale(vldrbq_gather_offset_z_s32(a, a_lanes, some), &c.first);
            const int32x4_t more = rescale(vldrbq_gather_offset_z_s32(b, b_lanes, some), &c.second);
            sums = rescale(vmlaq_n_s32(sums, more, c.second.sign), &c.result);
            const int16x8_t result = nn_mve_narrow(sums, sums, c.zero_point, low, high);
            vstrbq_p_s32(out, vmovlbq_s16(result), some);
            a += 4 * c.first.step;
            b += 4 * c.second.step;
        }
    }
}

static inline int is_half(int32_t multiplier, int32_t shift) {
    return multiplier == 1 << 30 && shift == 0;
}

static void add_in_steps(const nn_add_constants *k, const nn_view *in1, const nn_view *in2,
                         const nn_view *out, const nn_window *window) {
    const int32_t channels = out->channels, left = nn_max(k->output_shift, 0);
    const int plain =
        in1->channels == channels && in2->channels == channels && left == 0 && k->left_shift == 20;
    const int half1 = is_half(k->input1_multiplier, k->input1_shift);
    const int half2 = is_half(nn_max(k->input2_multiplier, -k->input2_multiplier), k->input2_shift);
    const int turned = plain && !half1 && half2; /* the operands change places */
    addition c;
    rescaling *const first = turned ? &c.second : &c.first;
    rescaling *const second = turned ? &c.first : &c.second;
    open_factor(first, k->input1_zero_point, k->left_shift, k->input1_multiplier, k->input1_shift);
    open_factor(second, k->input2_zero_point, k->left_shift, k->input2_multiplier, k->input2_shift);
    open_factor(&c.result, 0, left, k->output_multiplier, k->output_shift - left);
    first->step = in1->channels == channels;
    second->step = in2->channels == channels;
    c.zero_point = k->output_zero_point;
    c.low = k->clamp_min;
    c.high = k->clamp_max;
    nn_mve_for_strips(1, plain && (half1 || half2) ? add_halved : add_any, &c, turned ? in2 : in1,
                      turned ? in1 : in2, out, window);
}

void nn_add_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const nn_add_mve_constants *const k = (const nn_add_mve_constants *)constants;
    if (k->linear) {
        add_by_line(k, in1, in2, out, window);
    } else {
        add_in_steps(&k->general, in1, in2, out, window);
    }
}
