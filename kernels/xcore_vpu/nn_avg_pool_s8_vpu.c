/* AVERAGE_POOL_2D on the VPU: what lies outside the tensor does not count. */
#include "nn_vpu_average.h"
#include "nn_xcore_vpu.h"

static void compute_group(nn_vpu *v, void *plan, const nn_area *area, int32_t first, int8_t *out,
                          uint32_t mask) {
    nn_vpu_vclrdr(v);
    nn_vpu_average(v, (nn_vpu_averages *)plan, area, first, area->rows * area->columns, out, mask);
}

static inline int by_xs3(void *plan, const nn_area *area, const nn_piece *own, int8_t *out) {
    return nn_vpu_average_by_xs3((nn_vpu_averages *)plan, area, own, area->rows * area->columns,
                                 NULL, out);
}

static void piece(const nn_call *call, const nn_piece *own) {
    nn_vpu_averages p;
    nn_vpu v;
    nn_vpu_open_averages(&v, &p, (const nn_pool_constants *)call->constants);
    nn_vpu_for_groups(compute_group, by_xs3, &v, &p, call, own, NN_VPU_AVERAGED);
}

static void plain(const nn_call *call, const nn_piece *own) {
    nn_vpu_plain_piece(nn_avg_pool_s8, call, own);
}

void nn_avg_pool_s8_vpu(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const int on_vpu = nn_vpu_can_pool(constants, in, out, NN_VPU_AVERAGED, nn_vpu_average_step);
    const int32_t taps = geometry->kernel_h * geometry->kernel_w;
    nn_vpu_pool(on_vpu ? piece : plain, geometry, constants, in, out, window, NN_VPU_AVERAGED,
                on_vpu ? 3 + taps / 8 : 30 + 6 * taps);
}
