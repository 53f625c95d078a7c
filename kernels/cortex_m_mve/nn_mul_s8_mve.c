/* MUL, with broadcasting, Helium: eight elements at a time. Constants: nn_mul_constants. */
#include "nn_mve.h"

/* Four products, without the output's zero point. */
static inline int32x4_t multiply(int32x4_t a, int32x4_t b, const nn_mul_constants *c, int32_t left,
                                 int32_t odd, int32_t right) {
    int32x4_t product =
        vmulq_s32(vsubq_n_s32(a, c->input1_zero_point), vsubq_n_s32(b, c->input2_zero_point));
    product = vqrdmulhq_n_s32(vshlq_r_s32(product, left), c->output_multiplier);
    return vrshlq_n_s32(vqdmlahq_n_s32(product, product, odd), right);
}

/* `count` elements; an operand's step is 1, or 0 if it is the same for all. */
static inline void multiply_run(const nn_mul_constants *c, const int8_t *a, uint32_t step_a,
                                const int8_t *b, uint32_t step_b, int8_t *out, int32_t count) {
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int32_t left = nn_max(c->output_shift, 0), odd = c->output_shift < 0,
                  right = nn_min(c->output_shift, 0);
    const uint16x8_t offsets = vldrhq_u16(order);
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint32x4_t a_lanes = vmulq_n_u32(lanes, step_a), b_lanes = vmulq_n_u32(lanes, step_b);
    const int16x8_t low = vdupq_n_s16((int16_t)c->clamp_min),
                    high = vdupq_n_s16((int16_t)c->clamp_max);
    for (; count > 0; count -= 8, a += 8 * step_a, b += 8 * step_b, out += 8) {
        const mve_pred16_t some = vctp32q((uint32_t)count),
                           more = vctp32q((uint32_t)nn_max(count - 4, 0));
        const int32x4_t first =
            multiply(vldrbq_gather_offset_z_s32(a, a_lanes, some),
                     vldrbq_gather_offset_z_s32(b, b_lanes, some), c, left, odd, right);
        const int32x4_t second = multiply(vldrbq_gather_offset_z_s32(a + 4 * step_a, a_lanes, more),
                                          vldrbq_gather_offset_z_s32(b + 4 * step_b, b_lanes, more),
                                          c, left, odd, right);
        const int16x8_t result = nn_mve_narrow(first, second, c->output_zero_point, low, high);
        const mve_pred16_t stored =
            vcmpltq_n_s16(vreinterpretq_s16_u16(offsets), (int16_t)nn_min(count, 8));
        vstrbq_scatter_offset_p_s16(out, offsets, result, stored);
    }
}

void nn_mul_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const nn_mul_constants c = *(const nn_mul_constants *)constants;
    const int32_t channels = out->channels;
    const uint32_t step1 = in1->channels == channels, step2 = in2->channels == channels;
    const int joined = nn_one_column(window) ||
                       (step1 && step2 && nn_dense(in1) && nn_dense(in2) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t x = window->x0, run;
        for (; x < window->x1; x += run) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            run = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, window->x1 - x)));
            run = joined ? run : 1;
            multiply_run(&c, a, step1, b, step2, nn_pixel(out, y, x), run * channels);
        }
    }
}
