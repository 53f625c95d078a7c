/* Sums of products of int16 activations and int8 weights, eight products an instruction. */
#ifndef NN_MVE_WIDE_H
#define NN_MVE_WIDE_H

#include "nn_mve.h"
#include "nn_wide.h"

/* Puts out `count` (at most 4) convolutions' sums that fit int32 with their biases: as
 * nn_wide_output. */
static inline void nn_mve_wide_put(int16_t *out, int32x4_t sums, const nn_wide_channel *channels,
                                   const nn_wide_constants *common, int32_t count) {
    const mve_pred16_t some = vctp32q((uint32_t)count);
    const uint32x4_t each = vshlq_n_u32(vidupq_n_u32(0, 4), 2);
    const int32x4_t bias = vldrwq_gather_offset_z_s32(&channels->bias_low, each, some);
    const int32x4_t multiplier = vldrwq_gather_offset_z_s32(&channels->multiplier, each, some);
    const int32x4_t right = vldrwq_gather_offset_z_s32(&channels->right_shift, each, some);
    sums = vmulhq_s32(vaddq_s32(sums, bias), vshlq_n_s32(multiplier, 16));
    sums = vrshlq_s32(sums, vsubq_s32(vdupq_n_s32(16), right));
    sums = vmaxq_s32(sums, vdupq_n_s32(common->clamp_min));
    vstrhq_p_s32(out, vminq_s32(sums, vdupq_n_s32(common->clamp_max)), some);
}

/* Adds the products of `count` inputs with the weights of four channels, which are `apart` bytes
 * from one another; sums that fit int32. */
static inline void nn_mve_wide_narrow4(int32_t sums[4], const int16_t *x, const int8_t *w,
                                       int32_t apart, int32_t count) {
    const int8_t *w1 = w + apart, *w2 = w1 + apart, *w3 = w2 + apart;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    __asm volatile("wlstp.16 lr, %[count], 2f\n"
                   "1:\n"
                   "vldrh.u16 q0, [%[x]], #16\n"
                   "vldrb.s16 q1, [%[w0]], #8\n"
                   "vmladava.s16 %[s0], q0, q1\n"
                   "vldrb.s16 q2, [%[w1]], #8\n"
                   "vmladava.s16 %[s1], q0, q2\n"
                   "vldrb.s16 q3, [%[w2]], #8\n"
                   "vmladava.s16 %[s2], q0, q3\n"
                   "vldrb.s16 q1, [%[w3]], #8\n"
                   "vmladava.s16 %[s3], q0, q1\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [x] "+r"(x), [w0] "+l"(w), [w1] "+l"(w1), [w2] "+l"(w2), [w3] "+l"(w3),
                     [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3)
                   : [count] "r"(count)
                   : "q0", "q1", "q2", "q3", "lr", "memory");
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The same of one channel. */
static inline int32_t nn_mve_wide_narrow(int32_t sum, const int16_t *x, const int8_t *w,
                                         int32_t count) {
    for (; count > 0; count -= 8, x += 8, w += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)count);
        sum = vmladavaq_s16(sum, vldrhq_z_s16(x, some), vldrbq_z_s16(w, some));
    }
    return sum;
}

/* The same in 64 bits. */
static inline int64_t nn_mve_wide_long(int64_t sum, const int16_t *x, const int8_t *w,
                                       int32_t count) {
    for (; count > 0; count -= 8, x += 8, w += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)count);
        sum = vmlaldavaq_s16(sum, vldrhq_z_s16(x, some), vldrbq_z_s16(w, some));
    }
    return sum;
}

#endif
