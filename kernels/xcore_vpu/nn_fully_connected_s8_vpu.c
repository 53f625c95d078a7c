/* FULLY_CONNECTED: 16 outputs at a time, one dense layer a pixel. */
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

/* Output channels of groups [first, end) of the pixels of a window. */
static void compute(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window, int32_t first, int32_t end) {
    const int32_t groups = nn_vpu_groups(out->channels);
    const nn_vpu_block b = nn_vpu_open(constants, groups);
    const int32_t group_bytes = nn_vpu_group_bytes(in->channels);
    nn_vpu v;
    nn_vpu_runs runs;
    runs.count = 1;
    runs.bytes = in->channels;
    runs.row_step = runs.ring = 0;
    runs.end = runs.ring_end = nn_vpu_end(in);
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            runs.first = nn_pixel(in, y, x);
            nn_vpu_pixel(&v, &b, &runs, groups, first, end, group_bytes, 1, out->channels,
                         nn_pixel(out, y, x));
            NN_VPU_SCALAR(16);
        }
    }
}

void nn_fully_connected_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    (void)scratch;
    compute(constants, in, out, window, 0, nn_vpu_groups(out->channels));
}
