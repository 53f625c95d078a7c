/* SPACE_TO_DEPTH: squares of pixels to channels. */
#include "nn_squares.h"

void nn_space_to_depth_s8(const nn_square_geometry *geometry, const nn_view *in, const nn_view *out,
                          const nn_window *window) {
    const int32_t block = geometry->block, channels = in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t row = 0; row < block; row++) {
            const int8_t *line = nn_row(in, y * block + row);
            for (int32_t x = window->x0; x < window->x1; x++) {
                int8_t *to = nn_out_pixel(out, y, x) + row * block * channels;
                int32_t from = x * block, left = block;
                while (left > 0) {
                    const int32_t run = nn_square_run(in, from, left);
                    nn_square_copy(to, line + nn_column(in, from) * in->pixel_stride,
                                   run * channels);
                    to += run * channels;
                    from += run;
                    left -= run;
                }
            }
        }
    }
}
