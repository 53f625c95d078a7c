/* ADD and SUB, with broadcasting, Helium: eight elements at a time. Constants: nn_add_constants. */
#include "nn_mve.h"

/* What turns an operand into the common scale. */
typedef struct {
    int32_t offset; /* minus the zero point, shifted left like the elements */
    int32_t multiplier, shift, odd;
} rescaling;

typedef struct {
    rescaling first, second, result;
    int32_t left;        /* 2^left_shift */
    int32_t sign;        /* of the second operand */
    int32_t result_left; /* 2^shift where the result is shifted left, else 1 */
    int32_t zero_point, low, high;
} addition;

static inline rescaling rescaling_for(int32_t zero_point, int32_t left, int32_t multiplier,
                                      int32_t shift) {
    const rescaling r = {-zero_point * left, multiplier, shift, shift < 0};
    return r;
}

static inline int32x4_t rescale(int32x4_t values, const rescaling *r) {
    values = vqrdmulhq_n_s32(values, r->multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(values, values, r->odd), r->shift);
}

/* Four sums, without the zero point. */
static inline int32x4_t add_four(int32x4_t a, int32x4_t b, const addition *c, int general) {
    const int32x4_t left = vdupq_n_s32(c->left);
    a = rescale(vmlasq_n_s32(a, left, c->first.offset), &c->first);
    b = rescale(vmlasq_n_s32(b, left, c->second.offset), &c->second);
    a = vmlaq_n_s32(a, b, c->sign);
    return rescale(general ? vmulq_n_s32(a, c->result_left) : a, &c->result);
}

/* `count` elements; an operand's step is 1, or 0 if it is the same for all. */
static inline void add_as(const addition *constants, const int8_t *a, uint32_t step_a,
                          const int8_t *b, uint32_t step_b, int8_t *out, int32_t count,
                          int general) {
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const addition c = *constants;
    const uint16x8_t offsets = vldrhq_u16(order);
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint32x4_t a_lanes = vmulq_n_u32(lanes, step_a), b_lanes = vmulq_n_u32(lanes, step_b);
    const int16x8_t low = vdupq_n_s16((int16_t)c.low), high = vdupq_n_s16((int16_t)c.high);
    for (; count > 0; count -= 8, a += 8 * step_a, b += 8 * step_b, out += 8) {
        int32x4_t a0, a1, b0, b1;
        if (general || count < 8) { /* nothing outside is read */
            const mve_pred16_t first = vctp32q((uint32_t)count),
                               second = vctp32q((uint32_t)nn_max(count - 4, 0));
            a0 = vldrbq_gather_offset_z_s32(a, a_lanes, first);
            a1 = vldrbq_gather_offset_z_s32(a + 4 * step_a, a_lanes, second);
            b0 = vldrbq_gather_offset_z_s32(b, b_lanes, first);
            b1 = vldrbq_gather_offset_z_s32(b + 4 * step_b, b_lanes, second);
        } else {
            a0 = vldrbq_s32(a);
            a1 = vldrbq_s32(a + 4);
            b0 = vldrbq_s32(b);
            b1 = vldrbq_s32(b + 4);
        }
        const int32x4_t first = add_four(a0, b0, &c, general),
                        second = add_four(a1, b1, &c, general);
        const int16x8_t result = nn_mve_narrow(first, second, c.zero_point, low, high);
        if (count < 8) {
            const int16x8_t places = vreinterpretq_s16_u16(offsets);
            vstrbq_scatter_offset_p_s16(out, offsets, result,
                                        vcmpltq_n_s16(places, (int16_t)count));
            return;
        }
        vstrbq_scatter_offset_s16(out, offsets, result);
    }
}

/* Elements in a row of both operands, none shifted left in the end: what networks are made of. */
static NN_NOINLINE void add_plain(const addition *c, const int8_t *a, const int8_t *b, int8_t *out,
                                  int32_t count) {
    add_as(c, a, 1, b, 1, out, count, 0);
}

static NN_NOINLINE void add_any(const addition *c, const int8_t *a, uint32_t step_a,
                                const int8_t *b, uint32_t step_b, int8_t *out, int32_t count) {
    add_as(c, a, step_a, b, step_b, out, count, 1);
}

static inline addition open(const nn_add_constants *from) {
    addition c;
    c.left = 1 << from->left_shift;
    c.sign = from->input2_multiplier < 0 ? -1 : 1;
    c.first =
        rescaling_for(from->input1_zero_point, c.left, from->input1_multiplier, from->input1_shift);
    c.second = rescaling_for(from->input2_zero_point, c.left, c.sign * from->input2_multiplier,
                             from->input2_shift);
    c.result = rescaling_for(0, 1, from->output_multiplier, nn_min(from->output_shift, 0));
    c.result_left = 1 << nn_max(from->output_shift, 0);
    c.zero_point = from->output_zero_point;
    c.low = from->clamp_min;
    c.high = from->clamp_max;
    return c;
}

void nn_add_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const addition c = open((const nn_add_constants *)constants);
    const int32_t channels = out->channels;
    const uint32_t step1 = in1->channels == channels, step2 = in2->channels == channels;
    const int plain = step1 && step2 && c.result_left == 1;
    const int joined = nn_one_column(window) ||
                       (step1 && step2 && nn_dense(in1) && nn_dense(in2) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t x = window->x0, run;
        for (; x < window->x1; x += run) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, window->x1 - x)));
            run = joined ? run : 1;
            if (plain) {
                add_plain(&c, a, b, nn_pixel(out, y, x), run * channels);
            } else {
                add_any(&c, a, step1, b, step2, nn_pixel(out, y, x), run * channels);
            }
        }
    }
}
