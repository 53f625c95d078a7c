/* FULLY_CONNECTED: 16 outputs at a time, or those of a narrow slice; one dense layer a pixel. */
#include "nn_split.h"
#include "nn_vpu_matrix.h"
#include "nn_xcore_vpu.h"

/* Output channels of groups [first, end) of the pixels of a window. */
static void compute(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window, int32_t first, int32_t end) {
    const nn_vpu_block b = nn_vpu_open(constants, nn_vpu_groups(out->channels));
    const int32_t row_bytes = nn_vpu_row_bytes(in->channels);
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
    nn_vpu_runs runs;
    nn_vpu_group groups[NN_VPU_BATCH];
    nn_vpu v;
    nn_vpu_open_runs(&v, &runs, 1, in->channels, 0, rest);
    runs.x_step = in->pixel_stride;
    runs.to_step = out->pixel_stride;
    nn_vpu_open_groups(groups, NN_VPU_BATCH, &b);
    for (int32_t i = 0; i < NN_VPU_BATCH; i++) {
        groups[i].scalar = nn_vpu_scalar_of_dense;
        groups[i].dense = 1;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        runs.end = nn_vpu_row_end(in, y, y + 1 < window->y1);
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t pixels = nn_run(out, x, nn_run(in, x, window->x1 - x));
            const int8_t *from = nn_pixel(in, y, x);
            int8_t *to = nn_out_pixel(out, y, x);
            const int all = nn_vpu_all_by_xs3(&runs, from, to, pixels);
            for (int32_t i = first; i < end; i += NN_VPU_BATCH) {
                const int32_t count = nn_min(end - i, NN_VPU_BATCH);
                nn_vpu_members(&v, &b, out->channels, row_bytes, i, count, groups);
                nn_vpu_pixels_known(&v, &b, groups, count, &runs, from, to, pixels, all);
                NN_VPU_SCALAR(12);
            }
            groups->bytes = 0; /* the next run begins with the first groups */
            x += pixels;
            NN_VPU_SCALAR(30);
        }
    }
}

/* A narrow slice of the output channels. */
static void piece_few(const nn_call *call, const nn_piece *own) {
    const nn_view *in = call->in;
    const nn_window *window = &own->window;
    NN_VPU_ALIGNED int8_t rest[NN_VPU_BYTES];
    nn_vpu_runs runs;
    nn_vpu_few few;
    nn_vpu v;
    const nn_vpu_block b = nn_vpu_open_of_few(call->constants);
    nn_vpu_open_few(&v, &few, &b, call->out->channels, *(const int32_t *)call->geometry,
                    nn_vpu_row_bytes(in->channels));
    nn_vpu_open_runs(&v, &runs, 1, in->channels, 0, rest);
    runs.x_step = runs.to_step = 0; /* pixel by pixel */
    for (int32_t i = few.number; i < few.number + few.count; i++) {
        few.group[i].scalar = nn_vpu_scalar_of_dense;
        few.group[i].dense = 1;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        runs.end = nn_vpu_row_end(in, y, y + 1 < window->y1);
        for (int32_t x = window->x0; x < window->x1; x++) {
            nn_vpu_pixels_few(&v, &b, &few, &runs, nn_pixel(in, y, x),
                              nn_out_pixel(call->out, y, x), 1);
            NN_VPU_SCALAR(12);
        }
    }
}

/* Groups of 16 channels that lie in [c0, c1); cuts are between pairs of them. */
static void piece(const nn_call *call, const nn_piece *own) {
    compute(call->constants, call->in, call->out, &own->window, own->c0 / NN_VPU_ACC,
            nn_vpu_groups(own->c1));
}

void nn_fully_connected_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch, int32_t channel) {
    const int32_t blocks = nn_vpu_chunks(in->channels);
    const int few = out->channels < NN_VPU_ACC || nn_vpu_is_few(constants, out->channels, channel);
    const nn_call call = {.body = few ? piece_few : piece,
                          .geometry = &channel,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .channel_step = few ? 0 : 2 * NN_VPU_ACC,
                          .issues = nn_vpu_groups(out->channels) * (18 * blocks + 40)};
    (void)scratch;
    nn_split(&call, window);
}
