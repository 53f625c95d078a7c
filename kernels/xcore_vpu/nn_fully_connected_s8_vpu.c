/* FULLY_CONNECTED: 16 outputs at a time, one dense layer a pixel. */
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

/* Output channels of groups [first, end) of the pixels of a window. */
static void compute(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window, int32_t first, int32_t end) {
    const nn_vpu_block b = nn_vpu_open(constants, nn_vpu_groups(out->channels));
    const int32_t group_bytes = nn_vpu_group_bytes(in->channels);
    const nn_vpu_runs runs = {1, in->channels, 0, 0, NULL, nn_vpu_end(in)};
    nn_vpu v;
    for (int32_t index = first; index < end; index++) {
        const nn_vpu_group group = nn_vpu_member(&b, out->channels, group_bytes, index);
        for (int32_t y = window->y0; y < window->y1; y++) {
            for (int32_t x = window->x0; x < window->x1; x++) {
                nn_vpu_pixel(&v, &b, &group, &runs, nn_pixel(in, y, x), 1,
                             nn_pixel(out, y, x) + group.place);
                NN_VPU_SCALAR(12);
            }
        }
    }
}

void nn_fully_connected_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    (void)scratch;
    compute(constants, in, out, window, 0, nn_vpu_groups(out->channels));
}
