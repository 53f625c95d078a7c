/* ADD and SUB, with broadcasting, Helium: eight elements at a time. Constants: nn_add_constants.
 *
 * Operands are brought to twice the larger of their scales, so the factor of one is 1/2: it is
 * exact, and a shift like the one to the left (`halved`). */
#include "nn_mve.h"

/* What turns an operand into the common scale, and the sum into the output's. */
typedef struct {
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

static inline rescaling rescaling_for(int32_t zero_point, int32_t left_shift, int32_t multiplier,
                                      int32_t shift) {
    const int32_t left = 1 << left_shift, sign = multiplier < 0 ? -1 : 1;
    const rescaling r = {left, -zero_point * left, sign * multiplier, shift, shift < 0, sign, 1};
    return r;
}

static inline int32x4_t rescale(int32x4_t values, const rescaling *r) {
    values = vqrdmulhq_n_s32(vmlasq_n_s32(values, vdupq_n_s32(r->left), r->offset), r->multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(values, values, r->odd), r->shift);
}

/* Four sums, without the zero point; the first operand is halved. */
static inline int32x4_t add_four(int32x4_t a, int32x4_t b, const addition *c) {
    a = vmlasq_n_s32(a, vdupq_n_s32(c->first.left), c->first.offset);
    a = vmlaq_n_s32(a, rescale(b, &c->second), c->second.sign);
    a = vqrdmulhq_n_s32(a, c->result.multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(a, a, c->result.odd), c->result.shift);
}

/* What networks are made of: elements in a row of both operands, the sums shifted right. */
static NN_NOINLINE void add_halved(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                                   int32_t count) {
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const addition c = *(const addition *)plan;
    const uint16x8_t offsets = vldrhq_u16(order);
    const int16x8_t low = vdupq_n_s16((int16_t)c.low), high = vdupq_n_s16((int16_t)c.high);
    for (; count >= 8; count -= 8, a += 8, b += 8, out += 8) {
        const int32x4_t first = add_four(vldrbq_s32(a), vldrbq_s32(b), &c);
        const int32x4_t second = add_four(vldrbq_s32(a + 4), vldrbq_s32(b + 4), &c);
        const int16x8_t result = nn_mve_narrow(first, second, c.zero_point, low, high);
        vstrbq_scatter_offset_s16(out, offsets, result);
    }
    for (; count > 0; count -= 4, a += 4, b += 4, out += 4) { /* nothing outside is touched */
        const mve_pred16_t some = vctp32q((uint32_t)count);
        const int32x4_t sums = add_four(vldrbq_z_s32(a, some), vldrbq_z_s32(b, some), &c);
        const int16x8_t result = nn_mve_narrow(sums, sums, c.zero_point, low, high);
        vstrbq_p_s32(out, vmovlbq_s16(result), some);
    }
}

/* Any addition; an operand's step is 0 if it is one element. */
static NN_NOINLINE void add_any(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                                int32_t count) {
    const addition c = *(const addition *)plan;
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint32x4_t a_lanes = vmulq_n_u32(lanes, c.first.step);
    const uint32x4_t b_lanes = vmulq_n_u32(lanes, c.second.step);
    const int16x8_t low = vdupq_n_s16((int16_t)c.low), high = vdupq_n_s16((int16_t)c.high);
    for (; count > 0; count -= 4, a += 4 * c.first.step, b += 4 * c.second.step, out += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)count);
        int32x4_t sums = rescale(vldrbq_gather_offset_z_s32(a, a_lanes, some), &c.first);
        const int32x4_t more = rescale(vldrbq_gather_offset_z_s32(b, b_lanes, some), &c.second);
        sums = rescale(vmlaq_n_s32(sums, more, c.second.sign), &c.result);
        const int16x8_t result = nn_mve_narrow(sums, sums, c.zero_point, low, high);
        vstrbq_p_s32(out, vmovlbq_s16(result), some);
    }
}

static inline int is_half(const rescaling *r) {
    return r->multiplier == 1 << 30 && r->shift == 0 && r->left > 1;
}

static inline addition open(const nn_add_constants *from) {
    const int32_t left = nn_max(from->output_shift, 0);
    const addition c = {rescaling_for(from->input1_zero_point, from->left_shift,
                                      from->input1_multiplier, from->input1_shift),
                        rescaling_for(from->input2_zero_point, from->left_shift,
                                      from->input2_multiplier, from->input2_shift),
                        rescaling_for(0, left, from->output_multiplier, from->output_shift - left),
                        from->output_zero_point,
                        from->clamp_min,
                        from->clamp_max};
    return c;
}

void nn_add_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    addition c = open((const nn_add_constants *)constants);
    const int32_t channels = out->channels;
    const int plain = in1->channels == channels && in2->channels == channels && c.result.left == 1;
    c.first.step = in1->channels == channels;
    c.second.step = in2->channels == channels;
    if (plain && !is_half(&c.first) && is_half(&c.second)) { /* the operands change places */
        const nn_view *const other = in1;
        const rescaling first = c.first;
        in1 = in2;
        in2 = other;
        c.first = c.second;
        c.second = first;
    }
    if (plain && is_half(&c.first)) {
        c.first.left = c.first.left / 2 * c.first.sign;
        c.first.offset = c.first.offset / 2 * c.first.sign;
        nn_mve_for_runs(add_halved, &c, in1, in2, out, window);
    } else {
        nn_mve_for_runs(add_any, &c, in1, in2, out, window);
    }
}
