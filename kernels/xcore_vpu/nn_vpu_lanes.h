/* Bytes as lanes of 16 bits and back, for operators that compute element by element.
 *
 * A lane of 16 bits holds two bytes of memory, the second one (odd) above the first (even). The odd
 * byte of each lane comes by a shift to the right. The even one comes by a product with 256, whose
 * lower half no instruction saturates: vR of the accumulators is stored as it is. On the way back
 * a lane in 256ths keeps its upper byte at odd places, and is shifted down for even ones: that is
 * floor(lane / 256), without the symmetric saturation that has no -128.
 */
#ifndef NN_VPU_LANES_H
#define NN_VPU_LANES_H

#include "nn_pixelwise.h"
#include "nn_vpu.h"

#define NN_VPU_ODD_BYTES 0xAAAAAAAAU
#define NN_VPU_EVEN_BYTES 0x55555555U

/* 32 bytes of memory that the unit reads or writes. */
typedef struct {
    int16_t h[16];
} NN_VPU_ALIGNED nn_vpu_row;

/* All lanes alike. */
static inline void nn_vpu_splat(nn_vpu_row *row, int32_t lane) {
    for (int32_t i = 0; i < 16; i++) {
        row->h[i] = (int16_t)lane;
    }
    NN_VPU_SCALAR(10); /* eight words, and the word that is stored */
}

/* An accumulator's bias: its upper halves and its lower ones. */
static inline void nn_vpu_splat_bias(nn_vpu_row *high, nn_vpu_row *low, int32_t bias) {
    nn_vpu_splat(high, bias >> 16);
    nn_vpu_splat(low, bias);
}

/* What is added to lanes, one after the other and with saturation, so that they are clamped. */
typedef struct {
    int32_t needed;
    nn_vpu_row add[3];
} nn_vpu_clamp;

/* How lanes become outputs: by output steps of `unit`, 128 or 256, with fractions up to `fraction`
 * that do not count. It is unit - 1 where they are cut off, half of that where halves go up. */
typedef struct {
    int32_t unit, fraction;
} nn_vpu_step;

/* What is added at their top. */
static inline int32_t nn_vpu_clamp_down(int32_t high, nn_vpu_step step) {
    return high == 127 ? 0 : INT16_MAX - (step.unit * high + step.fraction);
}

/* And at their bottom. */
static inline int32_t nn_vpu_clamp_up(int32_t low, nn_vpu_step step) {
    return low == -128 ? 0 : -INT16_MAX - step.unit * low;
}

/* Whether what is added fits a lane: where the clamps have zero between them it does. */
static inline int nn_vpu_can_clamp(int32_t low, int32_t high, nn_vpu_step step) {
    const int32_t down = nn_vpu_clamp_down(high, step), up = nn_vpu_clamp_up(low, step);
    return down <= INT16_MAX && up >= -INT16_MAX && up - down >= INT16_MIN;
}

static inline void nn_vpu_open_clamp(nn_vpu_clamp *clamp, int32_t low, int32_t high,
                                     nn_vpu_step step) {
    const int32_t down = nn_vpu_clamp_down(high, step), up = nn_vpu_clamp_up(low, step);
    clamp->needed = down != 0 || up != 0;
    if (clamp->needed) {
        nn_vpu_splat(&clamp->add[0], down);
        nn_vpu_splat(&clamp->add[1], up - down);
        nn_vpu_splat(&clamp->add[2], -up);
    }
}

static inline void nn_vpu_clamp_lanes(nn_vpu *v, const nn_vpu_clamp *clamp) {
    if (clamp->needed) {
        nn_vpu_vladd(v, &clamp->add[0]);
        nn_vpu_vladd(v, &clamp->add[1]);
        nn_vpu_vladd(v, &clamp->add[2]);
    }
}

/* For nn_vpu_put_bytes: what makes lanes that become -128 negative, and bytes of -128. */
typedef struct {
    nn_vpu_row above, lowest;
} nn_vpu_narrow;

static inline void nn_vpu_open_narrow(nn_vpu_narrow *narrow) {
    nn_vpu_splat(&narrow->above, 127 * 256 + 128);
    nn_vpu_splat(&narrow->lowest, -128 * 256 + 128);
}

/* Sixteen lanes in 256ths, rounded with halves up, as the bytes at `out` that `mask` has. VDEPTH8
 * saturates to -127: lanes below that are found by their sign and stored once more. */
static inline void nn_vpu_put_bytes(nn_vpu *v, const nn_vpu_narrow *narrow, int8_t *out,
                                    uint32_t mask) {
    nn_vpu_row lanes;
    uint32_t lowest[8] NN_VPU_ALIGNED;
    nn_vpu_vstr(v, &lanes);
    nn_vpu_vladd(v, &narrow->above);
    nn_vpu_vdepth1(v);
    nn_vpu_vstr(v, lowest);
    nn_vpu_vldr(v, &lanes);
    nn_vpu_vdepth8(v);
    nn_vpu_vstrpv(v, out, mask);
    NN_VPU_SCALAR(3);
    if ((lowest[0] & mask) != 0) {
        nn_vpu_vldr(v, &narrow->lowest);
        nn_vpu_vstrpv(v, out, lowest[0] & mask);
        NN_VPU_SCALAR(1);
    }
}

/* Whether the unit can load and store there. */
static inline int nn_vpu_can_load(const nn_view *view) {
    return (((uintptr_t)view->data | (uint32_t)view->row_stride | (uint32_t)view->pixel_stride) &
            3) == 0;
}

/* Whether rows of whole pixels follow one another in a view, without a seam. */
static inline int nn_vpu_in_one_run(const nn_view *view) {
    return nn_dense(view) && view->ring_rows == view->height && view->ring_cols == view->width &&
           view->x0 == 0 && view->row_stride == view->width * view->channels;
}

/* As nn_for_runs; rows that follow one another are one run. */
static inline __attribute__((always_inline)) void
nn_vpu_for_runs(nn_run_of_two *compute, const void *plan, const nn_view *in1, const nn_view *in2,
                const nn_view *out, const nn_window *window) {
    if (window->x0 == 0 && window->x1 == out->width && nn_vpu_in_one_run(in1) &&
        nn_vpu_in_one_run(in2) && nn_vpu_in_one_run(out)) {
        compute(plan, nn_row(in1, window->y0), nn_row(in2, window->y0), nn_out_row(out, window->y0),
                (window->y1 - window->y0) * out->row_stride);
        return;
    }
    nn_for_runs(compute, plan, in1, in2, out, window);
}

/* `count` bytes, a multiple of 4, by words. */
static inline void nn_vpu_copy_words(int8_t *to, const int8_t *from, int32_t count) {
    for (int32_t i = 0; i < count; i += 4) {
        *(uint32_t *)(void *)(to + i) = *(const uint32_t *)(const void *)(from + i);
        NN_VPU_SCALAR(3);
    }
}

#endif
