/* Pixels of a tensor that is in memory twice: from one view of it to the other. */
#include "nn_arith.h"

void nn_keep_rows(const nn_view *in, const nn_view *out, const nn_window *window) {
    for (int32_t x = window->x0, run; x < window->x1; x += run) {
        run = nn_run(in, x, nn_run(out, x, window->x1 - x));
        const int32_t from = nn_column(in, x) * in->pixel_stride;
        const int32_t to = nn_column(out, x) * out->pixel_stride;
        const size_t bytes = (size_t)(run * in->pixel_stride);
        for (int32_t y = window->y0; y < window->y1; y++) {
            NN_MEMCPY(nn_out_row(out, y) + to, nn_row(in, y) + from, bytes);
        }
    }
}
