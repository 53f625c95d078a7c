/* AVERAGE_POOL_2D after a PAD on the VPU: what lies outside the tensor counts as elements of one
 * value. */
#include "nn_vpu_average.h"
#include "nn_xcore_vpu.h"

/* The accumulators begin with what lies outside. */
static void compute_group(nn_vpu *v, void *plan, const nn_area *area, int32_t first, int8_t *out,
                          uint32_t mask) {
    nn_vpu_averages *p = (nn_vpu_averages *)plan;
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)p->constants;
    const int32_t outside = filled->elements - area->rows * area->columns;
    if (outside == 0) {
        nn_vpu_vclrdr(v);
    } else {
        nn_vpu_row high, low;
        nn_vpu_splat_bias(&high, &low, outside * filled->value);
        nn_vpu_vldd(v, &high);
        nn_vpu_vldr(v, &low);
    }
    nn_vpu_average(v, p, area, first, filled->elements, out, mask);
}

static inline int by_xs3(void *plan, const nn_area *area, const nn_piece *own, int8_t *out) {
    nn_vpu_averages *p = (nn_vpu_averages *)plan;
    const nn_filled_pool_constants *filled = (const nn_filled_pool_constants *)p->constants;
    const int32_t outside = filled->elements - area->rows * area->columns;
    nn_vpu_row start[2];
    if (outside != 0) {
        nn_vpu_splat_bias(&start[0], &start[1], outside * filled->value);
    }
    return nn_vpu_average_by_xs3(p, area, own, filled->elements, outside == 0 ? NULL : start, out);
}

static void piece(const nn_call *call, const nn_piece *own) {
    nn_vpu_averages p;
    nn_vpu v;
    nn_vpu_open_averages(&v, &p, (const nn_pool_constants *)call->constants);
    nn_vpu_for_groups(compute_group, by_xs3, &v, &p, call, own, NN_VPU_AVERAGED);
}

static void plain(const nn_call *call, const nn_piece *own) {
    nn_vpu_plain_piece(nn_avg_pool_filled_s8, call, own);
}

void nn_avg_pool_filled_s8_vpu(const nn_pool_geometry *geometry, const void *constants,
                               const nn_view *in, const nn_view *out, const nn_window *window) {
    const int on_vpu = nn_vpu_can_pool(constants, in, out, NN_VPU_AVERAGED, nn_vpu_average_step);
    const int32_t taps = geometry->kernel_h * geometry->kernel_w;
    nn_vpu_pool(on_vpu ? piece : plain, geometry, constants, in, out, window, NN_VPU_AVERAGED,
                on_vpu ? 3 + taps / 8 : 30 + 6 * taps);
}
