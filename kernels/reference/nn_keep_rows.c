/* Pixels of a tensor that are in memory twice: from one view of it to the other. */
#include "nn_arith.h"

void nn_keep_rows(const nn_view *in, const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t run = nn_run(in, x, nn_run(out, x, window->x1 - x));
            NN_MEMCPY(nn_out_pixel(out, y, x), nn_pixel(in, y, x), (size_t)(run * in->pixel_stride));
            x += run;
        }
    }
}
