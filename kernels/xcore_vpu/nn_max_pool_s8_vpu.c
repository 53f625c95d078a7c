/* MAX_POOL_2D on the VPU, 32 channels at a time, in lanes of 16 bits.
 *
 * max(m, x) = m + max(x - m, 0). Lanes hold 128ths of a step, so that no difference saturates. The
 * odd bytes' lanes have the even bytes in their fraction, where they decide nothing. What is kept
 * is the maximum with its sign changed: then each tap takes one addition and one subtraction.
 */
#include "nn_vpu_pool.h"
#include "nn_xcore_vpu.h"

#define GROUP 32

static const nn_vpu_step maximum_step = {128, 127};

typedef struct {
    nn_vpu_clamp clamp;
    nn_vpu_row by_256, zero, start;
} pooling;

/* What is kept becomes the larger of it and of the lanes in vR. */
static inline void keep_larger(nn_vpu *v, nn_vpu_row *kept) {
    nn_vpu_vladd(v, kept);
    nn_vpu_vpos(v);
    nn_vpu_vlsub(v, kept);
    nn_vpu_vstr(v, kept);
}

/* The clamped maximum to `kept` itself. */
static inline void close_lanes(nn_vpu *v, const pooling *p, nn_vpu_row *kept) {
    nn_vpu_vldr(v, kept);
    nn_vpu_vlsub(v, &p->zero);
    nn_vpu_clamp_lanes(v, &p->clamp);
    nn_vpu_vstr(v, kept);
}

static void compute_group(nn_vpu *v, void *plan, const nn_area *area, int32_t first, int8_t *out,
                          uint32_t mask) {
    const pooling *p = (const pooling *)plan;
    nn_vpu_row odd, even, lanes;
    nn_vpu_vldr(v, &p->start);
    nn_vpu_vstr(v, &odd);
    nn_vpu_vstr(v, &even);
    nn_vpu_vldc(v, &p->by_256);
    NN_VPU_FOR_TAPS(area, first, tap) {
        nn_vpu_vlashr(v, tap, 1);
        keep_larger(v, &odd);
        nn_vpu_vclrdr(v);
        nn_vpu_vlmacc(v, tap);
        nn_vpu_vstr(v, &lanes);
        nn_vpu_vlashr(v, &lanes, 1);
        keep_larger(v, &even);
    }
    close_lanes(v, p, &odd);
    nn_vpu_vlashr(v, &odd, -1);
    nn_vpu_vstrpv(v, out, NN_VPU_ODD_BYTES & mask);
    close_lanes(v, p, &even);
    nn_vpu_vlashr(v, &even, 7);
    nn_vpu_vstrpv(v, out, NN_VPU_EVEN_BYTES & mask);
}

#ifdef __XS3A__
typedef char pooling_layout[offsetof(pooling, by_256) == POOLING_BY_256 &&
                                    offsetof(pooling, zero) == POOLING_ZERO &&
                                    offsetof(pooling, start) == POOLING_START
                                ? 1
                                : -1];
void nn_vpu_max_pool_xs3(const pooling *p, const nn_vpu_pool_area *a);
#endif

static inline int by_xs3(void *plan, const nn_area *area, const nn_piece *own, int8_t *out) {
#ifdef __XS3A__
    nn_vpu_pool_area a;
    if (nn_vpu_open_area(&a, area, own, GROUP, out)) {
        nn_vpu_max_pool_xs3((const pooling *)plan, &a);
        return 1;
    }
#else
    (void)plan, (void)area, (void)own, (void)out;
#endif
    return 0;
}

static void piece(const nn_call *call, const nn_piece *own) {
    const nn_pool_constants *c = (const nn_pool_constants *)call->constants;
    pooling p;
    nn_vpu v;
    nn_vpu_open_clamp(&p.clamp, c->clamp_min, c->clamp_max, maximum_step);
    nn_vpu_splat(&p.by_256, 256);
    nn_vpu_splat(&p.zero, 0);
    nn_vpu_splat(&p.start, 128 * 128);
    nn_vpu_vsetc(&v, NN_VPU_S16);
    nn_vpu_for_groups(compute_group, by_xs3, &v, &p, call, own, GROUP);
}

static void plain(const nn_call *call, const nn_piece *own) {
    nn_vpu_plain_piece(nn_max_pool_s8, call, own);
}

void nn_max_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const int on_vpu = nn_vpu_can_pool(constants, in, out, GROUP, maximum_step);
    const int32_t taps = geometry->kernel_h * geometry->kernel_w;
    nn_vpu_pool(on_vpu ? piece : plain, geometry, constants, in, out, window, GROUP,
                on_vpu ? 1 + taps / 2 : 25 + 8 * taps);
}
