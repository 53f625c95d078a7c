/* DEPTH_TO_SPACE: channels to squares of pixels. */
#include "nn_squares.h"

void nn_depth_to_space_s8(const nn_square_geometry *geometry, const nn_view *in, const nn_view *out,
                          const nn_window *window) {
    const int32_t block = geometry->block, channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int8_t *line = nn_row(in, y / block) + y % block * block * channels;
        int8_t *to = nn_out_row(out, y);
        int32_t x = window->x0;
        while (x < window->x1) {
            const int32_t skipped = x % block;
            const int32_t wanted = nn_min(block - skipped, window->x1 - x);
            const int32_t run = nn_square_run(out, x, wanted);
            const int8_t *from = line + nn_column(in, x / block) * in->pixel_stride;
            nn_square_copy(to + nn_column(out, x) * out->pixel_stride, from + skipped * channels,
                           run * channels);
            x += run;
        }
    }
}
