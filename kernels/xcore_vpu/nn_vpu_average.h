/* Averages on the VPU, 16 channels at a time.
 *
 * The sum of `count` bytes is multiplied by a number slightly above 2^bits / count: then halves up
 * are halves away from zero. With the error of the product below the distance from the next half,
 * 1 / count of a step or half of that where count is odd, the quotient is exact. Sums of more than
 * 255 bytes do not fit a lane and are divided one by one.
 */
#ifndef NN_VPU_AVERAGE_H
#define NN_VPU_AVERAGE_H

#include "nn_vpu_pool.h"

#define NN_VPU_AVERAGED 16
#define NN_VPU_MOST_COUNT 255
#define NN_VPU_MOST_BITS 23 /* 128 * 2^23 are 2^30 */

static const nn_vpu_step nn_vpu_average_step = {256, 127}; /* nn_vpu_put_bytes rounds */

typedef struct {
    nn_vpu_narrow narrow;
    nn_vpu_clamp clamp;
    nn_vpu_row ones, bias_high, bias_low, shift, factor, rest;
    const nn_pool_constants *constants;
    int32_t count; /* that the rows above are for; */
    int32_t times; /* how often the factor is due, 0 where there is none for the count */
} nn_vpu_averages;

#ifdef __XS3A__
typedef char nn_vpu_averages_layout[offsetof(nn_vpu_averages, ones) == AVERAGES_ONES &&
                                            offsetof(nn_vpu_averages, times) == AVERAGES_TIMES
                                        ? 1
                                        : -1];
void nn_vpu_average_xs3(const nn_vpu_averages *p, const nn_vpu_pool_area *a);
#endif

/* Halves stay halves with `multiplier` in the place of 2^bits / count. */
static inline int nn_vpu_is_exact_average(int32_t multiplier, int32_t bits, int32_t count) {
    const int64_t over = (int64_t)multiplier * count - ((int64_t)1 << bits);
    return 256 * over * count < (int64_t)(count % 2 ? 1 : 2) << bits;
}

/* Of 14 fractional bits, or as many more as the count needs. */
static inline void nn_vpu_open_count(nn_vpu_averages *p, int32_t count) {
    int32_t bits = 14, multiplier;
    p->count = count;
    p->times = 0;
    NN_VPU_SCALAR(60);
    if (count > NN_VPU_MOST_COUNT) {
        return;
    }
    while ((1 << (bits - 14)) < count) {
        bits++;
    }
    multiplier = (1 << bits) / count + 1;
    while (bits < NN_VPU_MOST_BITS && !nn_vpu_is_exact_average(multiplier, bits, count)) {
        bits++;
        multiplier = (1 << bits) / count + 1;
    }
    if (nn_vpu_is_exact_average(multiplier, bits, count)) {
        p->times = (multiplier + INT16_MAX - 1) / INT16_MAX;
        nn_vpu_splat(&p->factor, multiplier / p->times);
        nn_vpu_splat(&p->rest, multiplier - (p->times - 1) * (multiplier / p->times));
        nn_vpu_splat(&p->shift, bits - 8);
        nn_vpu_splat_bias(&p->bias_high, &p->bias_low, -(1 << (bits - 9)));
    }
}

/* Sixteen quotients of sums that fit 16 bits. */
static inline void nn_vpu_divide(nn_vpu *v, const nn_vpu_averages *p, int8_t *out, uint32_t mask) {
    nn_vpu_row sums;
    nn_vpu_vstr(v, &sums); /* the lower halves */
    nn_vpu_vsetc(v, NN_VPU_S16);
    nn_vpu_vldd(v, &p->bias_high);
    nn_vpu_vldr(v, &p->bias_low);
    nn_vpu_vldc(v, &sums);
    for (int32_t n = 1; n < p->times; n++) {
        nn_vpu_vlmacc(v, &p->factor);
        NN_VPU_SCALAR(1);
    }
    nn_vpu_vlmacc(v, &p->rest);
    nn_vpu_vlsat(v, &p->shift);
    nn_vpu_clamp_lanes(v, &p->clamp);
    nn_vpu_put_bytes(v, &p->narrow, out, mask);
    nn_vpu_vsetc(v, NN_VPU_S8);
}

/* The same of any sums. */
static inline void nn_vpu_divide_each(nn_vpu *v, const nn_vpu_averages *p, int8_t *out,
                                      uint32_t mask) {
    nn_vpu_row high, low;
    nn_vpu_vstd(v, &high);
    nn_vpu_vstr(v, &low);
    for (int32_t i = 0; i < NN_VPU_AVERAGED; i++) {
        const int32_t sum = high.h[i] * 65536 + (uint16_t)low.h[i];
        if ((mask >> i) & 1) {
            out[i] = (int8_t)nn_clamp(nn_divide(sum, p->count), p->constants->clamp_min,
                                      p->constants->clamp_max);
        }
        NN_VPU_SCALAR(45); /* a division takes 32 */
    }
}

static inline void nn_vpu_open_averages(nn_vpu *v, nn_vpu_averages *p, const nn_pool_constants *c) {
    p->constants = c;
    p->count = 0;
    nn_vpu_open_narrow(&p->narrow);
    nn_vpu_open_clamp(&p->clamp, c->clamp_min, c->clamp_max, nn_vpu_average_step);
    nn_vpu_splat(&p->ones, 0x0101);
    nn_vpu_vsetc(v, NN_VPU_S8);
}

/* Channels of a pixel by the function in assembly: the means of `count` elements, whose sums begin
 * with the rows at `start`, or NULL; 0 if it cannot. */
static inline int nn_vpu_average_by_xs3(nn_vpu_averages *p, const nn_area *area,
                                        const nn_piece *own, int32_t count, const nn_vpu_row *start,
                                        int8_t *out) {
#ifdef __XS3A__
    nn_vpu_pool_area a;
    if (count != p->count) {
        nn_vpu_open_count(p, count);
    }
    if (p->times > 0 && nn_vpu_open_area(&a, area, own, NN_VPU_AVERAGED, out)) {
        a.start = start;
        nn_vpu_average_xs3(p, &a);
        return 1;
    }
#else
    (void)p, (void)area, (void)own, (void)count, (void)start, (void)out;
#endif
    return 0;
}

/* Sixteen channels of a pixel: the means of `count` elements, whose sums are those of the area and
 * what the accumulators hold. */
static inline void nn_vpu_average(nn_vpu *v, nn_vpu_averages *p, const nn_area *area, int32_t first,
                                  int32_t count, int8_t *out, uint32_t mask) {
    if (count != p->count) {
        nn_vpu_open_count(p, count);
    }
    nn_vpu_vldc(v, &p->ones);
    NN_VPU_FOR_TAPS(area, first, tap) {
        nn_vpu_vlmacc(v, tap);
    }
    if (p->times > 0) {
        nn_vpu_divide(v, p, out, mask);
    } else {
        nn_vpu_divide_each(v, p, out, mask);
    }
}

#endif
