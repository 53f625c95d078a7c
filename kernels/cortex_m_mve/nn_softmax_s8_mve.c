/* SOFTMAX over the channels, Helium: the table's exponentials in gathering loads, four at a time.
 * The plain kernel serves rows whose sum 32 bits may not hold. */
#include "nn_mve.h"
#include "nn_softmax.h"

#define MOST 4095 /* elements of a row, each of which adds 2^19 at most */

static int32_t largest_of(const int8_t *in, int32_t count) {
    int32_t largest = -128;
    for (; count > 0; count -= 16, in += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)count);
        largest = vmaxvq_p_s8((int8_t)largest, vldrbq_z_s8(in, some), some);
    }
    return largest;
}

/* The exponentials of four elements; zeros where there are none. */
static inline int32x4_t exponentials_of(const int32_t *exponentials, const int8_t *in,
                                        int32_t largest, mve_pred16_t some) {
    const int32x4_t below = vsubq_s32(vdupq_n_s32(largest), vldrbq_z_s32(in, some));
    return vldrwq_gather_shifted_offset_z_s32(exponentials, vreinterpretq_u32_s32(below), some);
}

static NN_NOINLINE void softmax(const int32_t *exponentials, const int8_t *in, int8_t *out,
                                int32_t count) {
    const int32_t largest = largest_of(in, count);
    int32_t sum = 0, exponent;
    for (int32_t i = 0; i < count; i += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)(count - i));
        const int32x4_t four = exponentials_of(exponentials, in + i, largest, some);
        sum = vaddvaq_s32(sum, vrshrq_n_s32(four, NN_SUM_SHIFT));
    }
    if (sum >= NN_SUM_LIMIT) {
        nn_mve_fill(out, -128, count);
        return;
    }
    const int32_t factor = nn_reciprocal(sum, &exponent);
    for (int32_t i = 0; i < count; i += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)(count - i));
        int32x4_t four = exponentials_of(exponentials, in + i, largest, some);
        four = vrshlq_n_s32(vqrdmulhq_n_s32(four, factor), -exponent);
        four = vsubq_n_s32(vminq_s32(four, vdupq_n_s32(255)), 128);
        vstrbq_p_s32(out + i, four, some);
    }
}

void nn_softmax_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    const nn_softmax_constants *c = (const nn_softmax_constants *)constants;
    if (out->channels > MOST) {
        nn_softmax_s8(constants, in, out, window);
        return;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            softmax(c->exponentials, nn_pixel(in, y, x), nn_out_pixel(out, y, x), out->channels);
        }
    }
}
