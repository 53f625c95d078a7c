/* Sums of products of int16 activations and int8 weights, eight products an instruction. */
#ifndef NN_MVE_WIDE_H
#define NN_MVE_WIDE_H

#include "nn_mve.h"
#include "nn_wide.h"

/* Adds the products of `count` inputs with the weights of four channels, which are `apart` bytes
 * from one another; sums that fit int32. */
static inline void nn_mve_wide_narrow4(int32_t sums[4], const int16_t *x, const int8_t *w,
                                       int32_t apart, int32_t count) {
    const int8_t *w1 = w + apart, *w2 = w1 + apart, *w3 = w2 + apart;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (; count > 0; count -= 8, x += 8, w += 8, w1 += 8, w2 += 8, w3 += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)count);
        const int16x8_t values = vldrhq_z_s16(x, some);
        s0 = vmladavaq_s16(s0, values, vldrbq_z_s16(w, some));
        s1 = vmladavaq_s16(s1, values, vldrbq_z_s16(w1, some));
        s2 = vmladavaq_s16(s2, values, vldrbq_z_s16(w2, some));
        s3 = vmladavaq_s16(s3, values, vldrbq_z_s16(w3, some));
    }
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
